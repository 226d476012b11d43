//! Tests of `src/admission.rs`.

use super::Admission;

#[test]
fn own_host_is_known_by_its_name_and_its_port() {
    let own = Admission::loopback(8080);
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
    let own = Admission::loopback(80);
    assert!(own.is_own("localhost") && own.is_own("localhost:80"));
    assert!(!own.is_own("evil.example") && !own.is_own("localhost:8080"));
}

#[test]
fn host_of_a_named_port_is_an_address_or_a_name_that_was_given() {
    let own = Admission::named(["zkr.example".to_owned()]);
    for host in [
        "10.0.0.7:9470",
        "10.0.0.7",
        "[fd00::7]:9470",
        "[::1]",
        "localhost:8080",
        "zkr.example",
        "ZKR.example:443",
    ] {
        assert!(own.is_own(host), "{host}");
    }
    for host in [
        "",
        ":9470",
        "evil.example",
        "evil.zkr.example",
        "zkr.example.evil",
        "zkr.example:",
        "10.0.0.7.evil.example",
        "10.0.0.7@evil.example",
        "[evil.example]",
        "fd00::7",
        "10.0.0",
        "zkr.example:9470:9470",
    ] {
        assert!(!own.is_own(host), "{host}");
    }
}
