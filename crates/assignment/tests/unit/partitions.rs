//! The partitions and their record.

use super::*;

fn mistake(partitions: &Partitions) -> String {
    let refused = partitions.check().expect_err("a mistake");
    refused.to_string()
}

#[test]
fn mistake_is_named() {
    assert!(Partitions::numbered(MOST).check().is_ok());
    let cases = [
        (Partitions::numbered(0), "\"0\" is too few"),
        (Partitions::numbered(usize::MAX), "more than 100000"),
        (
            Partitions::named(["a", "b", "a"]),
            "\"a\" is the name of two",
        ),
        (Partitions::named(["a/b"]), "\"a/b\" cannot be"),
        (Partitions::named([""]), "\"\" cannot be"),
        (Partitions::named(["a\nb"]), "cannot be"),
        (Partitions::named(["x".repeat(201)]), "longer than 200"),
        (Partitions::named(["a"]).weight("a", 0), "weight 0"),
        (
            Partitions::named(["a"]).weight("b", 1),
            "\"b\" has a weight",
        ),
        (Partitions::named(["a"]).zone("a", "x y"), "zone \"x y\""),
    ];
    for (partitions, expected) in cases {
        let mistake = mistake(&partitions);
        assert!(mistake.contains(expected), "{mistake} lacks {expected}");
    }
}

#[test]
fn partitions_are_read_as_they_are_written() {
    let named = Partitions::named(["a b", "c"])
        .weight("c", 7)
        .zone("a b", "eu");
    for partitions in [named, Partitions::numbered(500)] {
        let pieces = partitions.pieces(100);
        assert!(pieces.iter().all(|piece| piece.len() <= 100));
        assert_eq!(Partitions::parse(&pieces), Ok(partitions));
    }
}

#[test]
fn line_that_names_no_partition_is_found() {
    let bad = [
        "1 -", "1 - ", "0 - a", "x - a", "1  a", "1 - a/b", "1 - ..", "1 - c", "-1 - a",
    ];
    for line in bad {
        let pieces = ["1 - b\n".to_owned(), format!("1 - c\n{line}\n")];
        let read = Partitions::parse(&pieces);
        assert!(
            matches!(read, Err((1, Unreadable::Line(2, _)))),
            "{line:?}: {read:?}"
        );
    }
    let long = format!("1 - {}", "x".repeat(201));
    assert!(matches!(
        Partitions::parse(&[long]),
        Err((0, Unreadable::Line(2, _)))
    ));
    assert!(Partitions::parse(&[""]).is_err());
}
