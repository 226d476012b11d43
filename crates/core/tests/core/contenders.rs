//! Names and their order: the same for every shuffle of the names that a directory may contain.

use proptest::prelude::*;
use zookeeper_recipes_core::{Contender, Identity, Sequence, order, ordered_by_czxid};

fn counts(label: &str) -> bool {
    matches!(label, "lock-" | "__lock__")
}

fn parse(name: &str) -> Option<Contender> {
    Contender::parse(name, counts)
}

/// Names that no contender has: foreign, and such as might confuse a parser.
fn foreign() -> impl Strategy<Value = String> {
    let uuid = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10";
    prop_oneof![
        Just("0".to_owned()),
        Just("config".to_owned()),
        Just("lock-".to_owned()),
        Just("lock-0000000001".to_owned()),
        Just(format!("{uuid}-lock-")),
        Just(format!("{uuid}-lock-1")),
        Just(format!("{uuid}-lock-00000000001")),
        Just(format!("{uuid}-lock-9999999999")),
        Just(format!("{uuid}-lock-+000000001")),
        Just(format!("{uuid}-lock--000000000")),
        Just(format!("{uuid}-lock-\u{661}\u{662}\u{663}\u{664}\u{665}")),
        Just(format!("{uuid}-latch-0000000001")),
        Just(format!("{uuid}-clock-0000000001")),
        // A letter that is no digit, a hyphen in a wrong place, and none before the label.
        Just(format!("{uuid}-lock-0000000001").replace("6e8f2c1a", "6e8fxc1a")),
        Just(format!("{uuid}-lock-0000000001").replace("-9d3b", "09d3b")),
        Just(format!("{uuid}_lock-0000000001")),
        Just("_c_\u{1f512}".repeat(9)),
        Just("\u{e9}".repeat(40)),
        "\\PC{0,60}",
        "_c_[0-9a-f-]{30,40}[\u{80}-\u{fff}]{0,3}-lock-[0-9]{9,11}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn foreign_names_are_no_contenders(name in foreign()) {
        prop_assert!(parse(&name).is_none(), "{:?}", name);
    }

    #[test]
    fn a_number_is_read_only_as_a_server_prints_it(text in "-?0{0,11}[0-9]{0,11}") {
        let name = format!("{}{text}", Identity::random().name("lock-"));
        let printed = text
            .parse::<i32>()
            .ok()
            .map(Sequence::from)
            .filter(|sequence| sequence.to_string() == text);
        let read = Contender::parse(&name, |label| label == "lock-");
        prop_assert_eq!(read.map(|contender| contender.sequence()), printed);
    }

    #[test]
    fn a_sequence_is_printed_as_a_server_prints_it(number in any::<i32>()) {
        // Java's String.format("%010d").
        let digits = i64::from(number).unsigned_abs().to_string();
        let expected = match number < 0 {
            true => format!("-{digits:0>9}"),
            false => format!("{digits:0>10}"),
        };
        prop_assert_eq!(Sequence::from(number).to_string(), expected);
    }
}

/// Each number beside which the count, its width in print or its sign changes.
const EDGES: [i32; 7] = [
    0,
    1_000_000_000,
    i32::MAX,
    i32::MIN,
    i32::MIN + (1 << 20),
    -1_000_000_000,
    -100_000_000,
];

/// The names and the `czxid`s of four contenders, in the order of their creation.
fn created(first: i32, step: i32, wraps: bool) -> Vec<Contender> {
    let number = |at: i32| match wraps {
        true => first.wrapping_add(step.wrapping_mul(at)),
        false => first.saturating_add(step.saturating_mul(at)),
    };
    let created = (0..4).map(|at| {
        let name = Identity::random().name("lock-");
        let mut contender = parse(&format!("{name}{}", Sequence::from(number(at))))?;
        contender.set_czxid(i64::from(at) + 1);
        Some(contender)
    });
    created.map(|it| it.expect("a contender")).collect()
}

#[test]
fn four_in_any_order_at_each_edge_are_in_the_order_of_their_creation() {
    let beside = |edge: i32| (-5..=5).map(move |by| edge.wrapping_add(by));
    let steps = [1, 2, 1 << 18].map(|step| [(step, true), (step, false)]);
    for first in EDGES.into_iter().flat_map(beside) {
        for (step, wraps) in steps.into_iter().flatten() {
            // Newer servers stay at the last number, and give out no negative ones after it.
            if !wraps && first < 0 {
                continue;
            }
            let expected = created(first, step, wraps);
            for shuffle in 0..4_usize.pow(4) {
                let places = [1, 4, 16, 64].map(|by| shuffle / by % 4);
                if !(0..4).all(|place| places.contains(&place)) {
                    continue;
                }
                let mut given = places.map(|place| expected[place].clone());
                order(&mut given);
                assert_eq!(given[..], expected[..], "{first} by {step}");
            }
        }
    }
}

/// Contenders with these numbers, each with its `czxid` if one is given.
fn numbered(numbers: &[(i32, Option<i64>)]) -> Vec<Contender> {
    let contender = |(number, czxid): &(i32, Option<i64>)| {
        let name = Identity::random().name("lock-");
        let mut contender = parse(&format!("{name}{}", Sequence::from(*number)))?;
        if let Some(czxid) = czxid {
            contender.set_czxid(*czxid);
        }
        Some(contender)
    };
    numbers
        .iter()
        .map(|it| contender(it).expect("a contender"))
        .collect()
}

/// The queue is in this order from each order of a list.
#[track_caller]
fn is_the_order(numbers: &[(i32, Option<i64>)]) {
    let expected = numbered(numbers);
    for turn in 0..expected.len() {
        let mut given = expected.clone();
        given.rotate_left(turn);
        order(&mut given);
        assert_eq!(given, expected);
        given.reverse();
        order(&mut given);
        assert_eq!(given, expected);
    }
}

/// How many numbers after the last one newer servers may give out in any order.
const BEYOND: i32 = 1 << 20;

#[test]
fn numbers_at_the_end_of_the_count_are_ordered_by_the_age_of_their_znodes() {
    let last = i32::MAX;
    for end in [last, i32::MIN, i32::MIN + BEYOND - 1] {
        for within in [0, last - 1] {
            let numbers = [
                (within, None),
                (last, Some(5)),
                (i32::MIN + 7, Some(7)),
                (end, Some(9)),
                (last, Some(11)),
            ];
            is_the_order(&numbers);
            assert_eq!(ordered_by_czxid(&numbered(&numbers)), [1, 2, 3, 4]);
        }
    }
    // No age is known yet.
    is_the_order(&[
        (last - 1, None),
        (last, None),
        (i32::MIN, None),
        (i32::MIN + 1, None),
    ]);
    // One age is known: its contender was read before the others came.
    is_the_order(&[(i32::MIN, Some(5)), (last, None)]);
}

#[test]
fn only_equal_numbers_and_the_end_of_the_count_need_the_age() {
    for (numbers, places) in [
        (&[4, 5, 5, 6][..], &[1, 2][..]),
        (&[5, 5, 6, 6], &[0, 1, 2, 3]),
        (&[4, 5, 6], &[]),
        (&[i32::MAX], &[]),
        (&[i32::MAX - 1, i32::MAX], &[1]),
        (&[], &[]),
    ] {
        let numbers: Vec<_> = numbers.iter().map(|number| (*number, None)).collect();
        assert_eq!(ordered_by_czxid(&numbered(&numbers)), places, "{numbers:?}");
    }
}

#[test]
fn a_number_that_may_be_read_in_two_ways_is_read_by_its_label() {
    let uuid = "6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10";
    let positive = format!("_c_{uuid}-lock-2147483647");
    let negative = format!("_c_{uuid}-lock--2147483647");
    for (name, number) in [(&positive, 2_147_483_647), (&negative, -2_147_483_647)] {
        let contender = parse(name).expect("a contender");
        assert_eq!(contender.sequence().get(), number);
    }
    let bare = Contender::parse(&positive, |label| label == "lock").expect("a contender");
    assert_eq!(bare.sequence().get(), -2_147_483_647);
}
