//! The text of a directory's data, and other texts.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn parses_what_it_wrote(
        successor in proptest::option::of("[a-z0-9_-]{1,60}"),
        proclaimed in proptest::option::of((any::<i64>(), "(?s).{0,80}")),
    ) {
        let proclaimed = proclaimed.map(|(token, text)| (FencingToken::from(token), text));
        let data = DirectoryData { successor, proclaimed };
        prop_assert_eq!(DirectoryData::parse(&data.to_bytes()), Some(data));
    }

    #[test]
    fn parses_any_bytes_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let parsed = DirectoryData::parse(&bytes);
        prop_assert_eq!(parsed.is_some(), bytes.is_empty());
    }
}

#[test]
fn no_bytes_are_the_default_and_bytes_of_another_program_are_none() {
    assert_eq!(DirectoryData::parse(b""), Some(DirectoryData::default()));
    let longer = format!("{HEAD} of the day\nnone");
    for bytes in ["10.0.0.7", "zookeeper-recipes", "3", &longer] {
        assert_eq!(DirectoryData::parse(bytes.as_bytes()), None, "{bytes}");
    }
}
