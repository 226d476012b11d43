//! What the number of a znode proves, and how many directories are noted.

use super::*;

fn known_alone(number: i32, czxid: i64, next: i32, next_czxid: i64) -> bool {
    let alone = Alone {
        sequence: number.into(),
        czxid,
        was_known_alone: false,
    };
    alone.proves_alone(next.into(), next_czxid)
}

#[test]
fn directories_that_were_used_long_ago_are_forgotten() {
    let path = |number: usize| NodePath::new(&format!("/locks/{number}")).expect("a path");
    let alone = |number: usize| Alone {
        sequence: 0.into(),
        czxid: number as i64,
        was_known_alone: false,
    };
    let last = LastAlone::default();
    let known = |number: usize| {
        let directories = lock(&last.0);
        let mut known = directories
            .iter()
            .filter_map(|known| known.get(&path(number)));
        known.next().map(|alone| alone.czxid)
    };
    for number in 1..100 * KEPT {
        last.insert(&path(0), alone(number));
        last.insert(&path(number), alone(number));
        let oldest = number.saturating_sub(KEPT / 2).max(1);
        assert_eq!(known(oldest), Some(oldest as i64), "{number}");
        assert!(lock(&last.0).iter().map(BTreeMap::len).sum::<usize>() <= 2 * KEPT);
    }
    assert_eq!(known(1), None);
    assert_eq!(known(0), Some(100 * KEPT as i64 - 1));
    let taken = last.take(&path(0)).map(|alone| alone.czxid);
    assert_eq!((taken, known(0)), (Some(100 * KEPT as i64 - 1), None));
}

#[test]
fn next_number_after_few_transactions_says_that_nobody_has_come() {
    assert!(known_alone(7, 100, 8, 102));
    assert!(known_alone(7, 100, 8, 107));
}

#[test]
fn another_number_says_nothing() {
    for next in [i32::MIN, -1, 0, 6, 7, 9, i32::MAX] {
        assert!(!known_alone(7, 100, next, 102), "{next}");
    }
}

#[test]
fn as_many_transactions_as_a_new_directory_needs_say_nothing() {
    assert!(!known_alone(7, 100, 8, 108));
    assert!(!known_alone(0, 100, 1, 102));
    assert!(!known_alone(1, 100, 2, 102));
    assert!(known_alone(2, 100, 3, 102));
    // Another leader numbers its transactions anew, and an older transaction is not later.
    assert!(!known_alone(7, (1 << 32) - 1, 8, 1 << 32));
    assert!(!known_alone(7, i64::MIN, 8, i64::MAX));
}

#[test]
fn end_of_the_count_says_nothing() {
    assert!(known_alone(i32::MAX - 2, 100, i32::MAX - 1, 102));
    assert!(!known_alone(i32::MAX - 1, 100, i32::MAX, 102));
    assert!(!known_alone(i32::MAX, 100, i32::MIN, 102));
    assert!(!known_alone(-3, 100, -2, 102));
    assert!(!known_alone(-1, 100, 0, 102));
}
