//! Tests of the referee's judgement: `src/judge.rs` and `src/owners.rs`.

use super::*;

/// A line of a contender or worker, or what becomes of a worker's process.
fn step(judge: &mut Judge, line: &str) {
    match *line.split(' ').collect::<Vec<_>>() {
        ["stopped", worker] => judge.owners().stopped(worker),
        ["continues", worker] => judge.owners().continues(worker),
        ["gone", worker] => judge.gone(worker),
        _ => judge.hear(line).expect("a line that can be understood"),
    }
}

const READER: &str = "enter a shared r-0000000003";
const WRITER: &str = "enter a exclusive w-0000000003";
const NEXT_WRITER: &str = "enter b exclusive w-0000000004";
const OLDER: &str = "enter b exclusive w-0000000002";
const OWN: &str = "own a p 5 1 1";
const WORKS: &str = "works a p 5";
const FREE: &str = "free a p";
const NEXT: &str = "own b p 7 1 1";

/// Lines, and a part of the violation that the judge finds in them. Empty if it finds none.
const CASES: &[(&[&str], &str)] = &[
    (&[WRITER, "leave a", NEXT_WRITER], ""),
    (
        &[WRITER, "leave a", "enter b shared r-0000000002"],
        "tokens grow",
    ),
    (&[READER, "leave a", OLDER], "tokens grow"),
    (&[READER, "enter b shared r-0000000002", "leave b"], ""),
    (&[READER, NEXT_WRITER], "a (r-0000000003)"),
    (
        &[WRITER, NEXT_WRITER],
        "b (w-0000000004) held beside a (w-0000000003)",
    ),
    (&[WRITER, "downgrade a", "enter b shared r-0000000004"], ""),
    (&[WRITER, "downgrade a", NEXT_WRITER], "held beside a"),
    (&[READER, READER], "owns it again"),
    (&[READER, "downgrade a"], "did not hold"),
    (&[READER, "leave a", "leave a"], "did not own"),
    (&[OWN, WORKS, FREE, NEXT, "own a q 1 1 1"], ""),
    (&[OWN, NEXT], "b (p) held beside a (p)"),
    (&[OWN, FREE, WORKS], "works on p"),
    (&[OWN, "works a p 4"], "works on p"),
    (&[OWN, "gone a", NEXT], ""),
    (
        &["own a s 1 2 5", "own b s 2 2 5", "own c s 3 2 5"],
        "held beside",
    ),
    // A stopped worker owns nothing. It may have looked at its hold before the stop, once.
    (
        &[OWN, "stopped a", NEXT, WORKS, "continues a", WORKS, FREE],
        "",
    ),
    (
        &[OWN, "stopped a", NEXT, "continues a", WORKS, WORKS],
        "works on p",
    ),
    // One hold from before the stop may be reported after it, and no second one.
    (
        &[
            "stopped a",
            NEXT,
            "continues a",
            "own a p 6 1 1",
            "free a p",
        ],
        "",
    ),
    (
        &[
            "stopped a",
            NEXT,
            "continues a",
            "own a p 6 1 1",
            "free a p",
            "own a p 6 1 1",
        ],
        "held beside",
    ),
    (
        &[NEXT, "stopped a", "continues a", "own a p 8 1 1"],
        "held beside",
    ),
    (
        &[
            "stopped a",
            "own b s 7 1 5",
            "continues a",
            "own c s 9 1 5",
            "own a s 8 1 5",
        ],
        "",
    ),
];

#[test]
fn each_broken_promise_is_found_and_nothing_else() {
    for (lines, found) in CASES {
        let mut judge = Judge::default();
        lines.iter().for_each(|line| step(&mut judge, line));
        let violations = &judge.report.violations;
        assert_eq!(
            violations.is_empty(),
            found.is_empty(),
            "{lines:?}: {violations:?}"
        );
        assert!(
            violations.iter().all(|it| it.contains(found)),
            "{violations:?}"
        );
    }
}

#[test]
fn line_that_makes_no_sense_is_an_error_that_quotes_it() {
    for line in [
        "",
        "enter a",
        "enter a both x-0000000001",
        "enter a shared nonsense",
    ] {
        let error = Judge::default().hear(line).expect_err("no sense");
        assert!(error.to_string().contains('"'), "{error}");
    }
}
