//! Tests of what judges a history: the store, the checker, the looks.

use std::collections::BTreeMap;

use super::Outcome::{Acknowledged, Refused, Unsent, Withheld};
use super::*;
use crate::looks::{first_newer, judge_looks};
use crate::store::Store;

const fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A turn that has acquired at this time. Its look is its beginning and the answer.
fn turn(token: i64, acquired: u64, look: Option<(u64, bool)>, outcomes: [Outcome; 3]) -> Attempt {
    Attempt {
        element: token.unsigned_abs(),
        token,
        acquired: at(acquired),
        look: look.map(|(began, held)| Look {
            began: at(began),
            held,
        }),
        outcomes,
        fault: None,
    }
}

fn attempt(token: i64, outcome: Outcome) -> Attempt {
    turn(token, 0, None, [outcome; 3])
}

#[test]
fn acknowledged_element_that_the_set_lacks_is_lost_and_another_one_is_unexpected() {
    let outcomes = [Acknowledged, Withheld, Refused, Unsent, Acknowledged];
    let history: Vec<Attempt> = (1..)
        .zip(outcomes)
        .map(|(token, of)| attempt(token, of))
        .collect();
    let verdict = |set: &[u64]| check(&history, Way::Fenced, &set.iter().copied().collect());
    let good = Verdict {
        acknowledged: 2,
        withheld: 1,
        refused: 1,
        ..Verdict::default()
    };
    assert_eq!(verdict(&[1, 5]), good);
    assert_eq!(verdict(&[5]).lost, BTreeSet::from([1]));
    assert_eq!(verdict(&[1, 2, 5, 7]).unexpected, BTreeSet::from([2, 7]));
    let ways = [turn(1, 0, None, [Acknowledged, Withheld, Refused])];
    let lost = Way::ALL.map(|way| check(&ways, way, &BTreeSet::new()).lost.len());
    assert_eq!(lost, [1, 0, 0], "each way is judged by its own outcome");
    assert!(ways[0].is_late() && ways[0].is_late_and_withheld());
}

#[test]
fn accepted_token_that_is_not_newer_is_out_of_order() {
    let of = |tokens: &[(i64, Outcome)]| {
        let history = tokens
            .iter()
            .map(|(token, outcome)| attempt(*token, *outcome));
        is_in_order(&history.collect::<Vec<_>>())
    };
    assert!(of(&[(1, Acknowledged), (3, Acknowledged), (2, Refused)]));
    assert!(!of(&[
        (1, Acknowledged),
        (3, Acknowledged),
        (2, Acknowledged)
    ]));
    assert!(!of(&[(1, Acknowledged), (1, Acknowledged)]));
}

/// How many elements each way has lost, after these writes: the token, whether the turn has read
/// before all others, and what the library said before the write.
fn lost(writes: &[(i64, bool, bool)]) -> ([usize; 3], Store) {
    let mut store = Store::default();
    let early: Vec<_> = writes
        .iter()
        .map(|(token, early, _)| early.then(|| store.read(*token)))
        .collect();
    let mut history = Vec::new();
    for ((token, _, holds), early) in writes.iter().zip(early) {
        let read = early.unwrap_or_else(|| store.read(*token));
        let outcomes = store.write(read, token.unsigned_abs(), *holds);
        history.push(turn(*token, 0, None, outcomes));
    }
    (
        Way::ALL.map(|way| check(&history, way, &store.set(way)).lost.len()),
        store,
    )
}

#[test]
fn late_write_of_a_paused_holder_loses_the_writes_since_unless_the_token_is_compared() {
    let (nothing, store) = lost(&[(1, false, true), (2, false, true), (3, false, true)]);
    assert_eq!(nothing, [0; 3]);
    assert_eq!(store.set(Way::Fenced), BTreeSet::from([1, 2, 3]));
    // The holder of token 1 has read before the others, and writes after them.
    let (two, store) = lost(&[(2, false, true), (3, false, true), (1, true, true)]);
    assert_eq!(two, [2, 2, 0]);
    let by = BTreeMap::from([(2, vec![1]), (3, vec![1])]);
    assert_eq!(*store.overwritten_by(Way::Checked), by);
    assert!(store.overwritten_by(Way::Fenced).is_empty());
    // Between the read and the write of the next holder.
    assert_eq!(lost(&[(1, true, true), (2, true, true)]).0, [1, 1, 0]);
    // It knows of its loss.
    assert_eq!(lost(&[(2, false, true), (1, true, false)]).0, [1, 0, 0]);
}

#[test]
fn look_is_wrong_if_it_says_held_after_the_first_newer_holder_has_acquired() {
    let next = turn(2, 100, Some((105, true)), [Acknowledged; 3]);
    let paused = |look| turn(1, 0, look, [Acknowledged, Acknowledged, Refused]);
    for (look, after_newer, wrong) in [
        (Some((101, true)), 1, true),
        (Some((101, false)), 1, false),
        // At the same time, the order is not known.
        (Some((100, true)), 0, false),
        (Some((99, true)), 0, false),
        (None, 0, false),
    ] {
        let history = [next.clone(), paused(look)];
        let looks = judge_looks(&history, &BTreeSet::new(), &BTreeMap::new());
        assert_eq!(
            (looks.after_newer, looks.wrong.contains(&1)),
            (after_newer, wrong)
        );
    }
    // The holder of token 2 acquired the lock before that of token 3, and says so later.
    let history = [
        turn(3, 50, None, [Acknowledged; 3]),
        turn(2, 90, None, [Refused; 3]),
        paused(None),
    ];
    assert_eq!(first_newer(&history)[&1].token, 3);
}

#[test]
fn lost_element_is_counted_to_the_look_of_the_late_write_or_is_unexplained() {
    let judge = |look, outcome, lost: u64, overwritten_by: u64| {
        let next = turn(2, 100, Some((105, true)), [Acknowledged; 3]);
        let late = turn(
            1,
            0,
            Some((look, true)),
            [Acknowledged, Acknowledged, outcome],
        );
        let overwritten = BTreeMap::from([(lost, vec![overwritten_by])]);
        let looks = judge_looks(&[next, late], &BTreeSet::from([lost]), &overwritten);
        (
            looks.lost_by_earlier_look,
            looks.lost_by_wrong_look,
            looks.unexplained.len(),
        )
    };
    // The late write of 1 removes 2. Or it comes between the read and the write of 2.
    for (lost, overwritten_by) in [(2, 1), (1, 2)] {
        assert_eq!(judge(99, Refused, lost, overwritten_by), (1, 0, 0));
        assert_eq!(judge(101, Refused, lost, overwritten_by), (0, 1, 0));
        assert_eq!(judge(99, Acknowledged, lost, overwritten_by), (0, 0, 1));
    }
}
