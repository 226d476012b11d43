//! Tests of `src/embedded/admin/admission.rs`.

use super::Admission;

#[test]
fn own_host_is_known_by_its_name_and_its_port() {
    let own = Admission { port: 8080 };
    for host in [
        "127.0.0.1:8080",
        "localhost:8080",
        "LocalHost:8080",
        "[::1]:8080",
    ] {
        assert!(own.is_own(host), "{host}");
    }
    for host in [
        "",
        ":8080",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:80",
        "127.0.0.1:18080",
        "127.0.0.1:08080",
        "127.0.0.2:8080",
        "[::1]",
        "::1:8080",
        "evil.example:8080",
        "localhost.evil.example:8080",
        "evil.example:80:8080",
        "localhost.:8080",
        "127.0.0.1:8080@evil.example",
        "127.0.0.1:8080@evil.example:8080",
        "127.0.0.1:8080,evil.example:8080",
    ] {
        assert!(!own.is_own(host), "{host}");
    }
    let own = Admission { port: 80 };
    assert!(own.is_own("localhost") && own.is_own("localhost:80"));
    assert!(!own.is_own("evil.example") && !own.is_own("localhost:8080"));
}
