//! Tests of `src/four_letter/listing.rs`.

use super::*;

#[test]
fn watches_are_read_by_path() {
    let watches = parse_watches("/a\n\t0x100\n\t0xfffffffffffffff0\n/b\n\t0x100\n");
    assert_eq!(watches["/a"], BTreeSet::from([0x100, -16]));
    assert_eq!(watches["/b"], BTreeSet::from([0x100]));
    assert!(parse_watches("").is_empty());
}

#[test]
fn ephemerals_are_read_by_session() {
    let answer = "SessionTracker dump:\nSession Sets (2)/(1):\n0 expire at x:\n\t0x5\n\
                  ephemeral nodes dump:\nSessions with Ephemerals (1):\n0x100:\n\t/a\n\t/b\n\
                  Connections dump:\nConnections Sets (1)/(1):\n\tip: /127.0.0.1\n";
    let ephemerals = parse_ephemerals(answer);
    assert_eq!(ephemerals.len(), 1);
    assert_eq!(ephemerals[&0x100].len(), 2);
}
