//! Records in pieces.

use proptest::collection::btree_map;
use proptest::prelude::*;

use super::*;

fn lines() -> impl Strategy<Value = Lines> {
    btree_map("[a-z#: -]{1,6}", "[a-z0-9]{1,4}", 0..20)
}

proptest! {
    #[test]
    fn piece_is_read_as_it_is_written(of in 0..9_usize, note in "[a-z: ]{0,9}", lines in lines()) {
        let piece = Piece { of, note, lines };
        prop_assert_eq!(Piece::parse("plan", &piece.text("plan")), Ok(piece.clone()));
        prop_assert_eq!(Piece::parse("owned", &piece.text("plan")), Err(Unreadable::Other));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        prop_assert!(Piece::parse("plan", &bytes).is_err());
    }

    #[test]
    fn each_partition_is_in_one_piece_and_stays_there(first in lines(), second in lines()) {
        let half = first.len() / 2;
        let cut = |(index, it): (usize, (&String, &String))| (index < half, (it.0.clone(), it.1.clone()));
        let (left, right): (Vec<_>, Vec<_>) = first.iter().enumerate().map(cut).partition(|it| it.0);
        let old: Vec<Piece> = [left, right]
            .map(|it| {
                let lines = it.into_iter().map(|it| it.1).collect::<Lines>();
                Piece { of: 0, note: String::new(), lines }
            })
            .into();
        let new = arrange(&old, "", second.clone());
        let all: Vec<_> = new.iter().flat_map(|it| &it.lines).collect();
        prop_assert_eq!(all.len(), second.len());
        prop_assert!(all.into_iter().all(|(partition, word)| second.get(partition) == Some(word)));
        for (index, piece) in old.iter().enumerate() {
            for partition in piece.lines.keys().filter(|it| second.contains_key(*it)) {
                prop_assert!(new[index].lines.contains_key(partition));
            }
        }
    }
}

#[test]
fn long_record_is_in_several_pieces_that_are_complete_together() {
    let partition = |it: usize| (format!("partition-{it}"), "own".to_owned());
    let pieces = arrange(&[], "note", (0..10_000).map(partition).collect());
    assert!(pieces.len() > 4, "{}", pieces.len());
    let longest = pieces.iter().map(|it| it.text("plan").len()).max();
    assert!(longest < Some(FULL + 100), "{longest:?}");
    let named = |(index, piece): (usize, &Piece)| (name("w", index), piece.clone());
    let mut found: Vec<_> = pieces.iter().enumerate().map(named).collect();
    assert_eq!(complete(found.clone())["w"], pieces);
    found.remove(2);
    assert!(complete(found).is_empty());
}

#[test]
fn line_with_a_name_that_no_znode_can_have_is_found() {
    let found = Piece::parse("plan", b"zookeeper-recipes plan 1 1 \nown a\nown b/c\n");
    assert!(matches!(found, Err(Unreadable::Line(3, _))), "{found:?}");
}

/// A reader would ask for each of them.
#[test]
fn record_that_names_more_pieces_than_there_can_be_is_found() {
    let text = |of| format!("zookeeper-recipes plan 1 {of} note\n").into_bytes();
    assert!(Piece::parse("plan", &text(MOST)).is_ok());
    let found = Piece::parse("plan", &text(MOST + 1));
    assert!(matches!(found, Err(Unreadable::Line(1, _))), "{found:?}");
}

#[test]
fn another_version_is_named() {
    let found = Piece::parse("plan", b"zookeeper-recipes plan 2 of 1\nown a\n");
    assert_eq!(found, Err(Unreadable::Version("2".to_owned())));
}
