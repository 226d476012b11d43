//! Any names of znodes, read as contenders of each recipe.

mod reading;

use proptest::collection::vec;
use proptest::prelude::*;

use reading::{names_in, read_as_each_recipe};

/// Names that other libraries write, and some that they do not.
const NAMES: [&str; 12] = [
    "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-0000000007",
    "_c_6e8f2c1a-9d3b-8001-8a41-0c9d5e7b2f10-lock--2147483648",
    "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-2147483647",
    "_c_6e8f2c1a9d3b4f578a410c9d5e7b2f10-__WRIT__0000000001",
    "6e8f2c1a9d3b4f578a410c9d5e7b2f10__rlock__0000000002",
    "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-permit-4294967295-0000000003",
    "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-permit-00-0000000003",
    "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-standby-latch-0000000004",
    "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-\u{1f512}0000000004",
    "_c_",
    "\u{e9}",
    "lock-0000000007",
];

#[test]
fn known_names_are_read_and_ordered() {
    let names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(read_as_each_recipe(&names, Some(b"3")), [3, 2, 2, 1, 1]);
    read_as_each_recipe(&names, None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_names_are_read_and_ordered(
        bytes in vec(any::<u8>(), 0..200),
        data in proptest::option::of(vec(any::<u8>(), 0..12)),
    ) {
        read_as_each_recipe(&names_in(&bytes), data.as_deref());
    }

    #[test]
    fn names_with_a_changed_byte_are_read_and_ordered(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut names: Vec<Vec<u8>> = NAMES.iter().map(|name| Vec::from(*name)).collect();
        for (place, byte) in changes {
            let name = place.get(&names).len();
            let at = usize::from(byte) % name;
            let count = names.len();
            names[place.index(count)][at] = byte;
        }
        let names: Vec<String> = names
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        read_as_each_recipe(&names, Some(b"2"));
    }
}
