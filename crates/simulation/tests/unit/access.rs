//! Tests of `src/server/access.rs`.

use super::{AddressRange, identity};

#[test]
fn digest_is_that_of_apaches_server() {
    let identity = identity("digest", b"super:test").expect("a known scheme");
    assert_eq!(&*identity.id, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
}

#[test]
fn a_range_holds_the_addresses_that_begin_as_it_does() {
    let contains = |range: &str, address: &str| {
        AddressRange::parse(range).map(|range| range.contains(address))
    };
    assert_eq!(contains("127.0.0.1", "127.0.0.1"), Some(true));
    assert_eq!(contains("127.0.0.1", "127.0.0.2"), Some(false));
    assert_eq!(contains("127.0.0.0/8", "127.9.9.9"), Some(true));
    assert_eq!(contains("0.0.0.0/0", "10.0.0.1"), Some(true));
    assert_eq!(contains("10.0.0.0/8", "::1"), Some(false));
    for malformed in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "::1"] {
        assert_eq!(contains(malformed, "10.0.0.1"), None, "{malformed}");
    }
}
