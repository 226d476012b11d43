//! The rules of an election, on every short queue.

use zookeeper_recipes_core::{Contender, Rule};
use zookeeper_recipes_election::FirstCandidate;
use zookeeper_recipes_testkit::laws::Laws;

#[test]
fn candidates_on_standby_or_not_keep_the_laws() {
    let (candidate, standby) = (FirstCandidate::default(), FirstCandidate::standby());
    let laws = Laws::of(&[&candidate, &standby]);
    let one = |labels: &[&str]| labels.len() <= 1;
    assert_eq!(laws.holders(&one).wakes(&one).check(), Ok(()));
}

fn candidate(label: &str, number: i32) -> Contender {
    let identity = format!("_c_6e8f2c1a-9d3b-4f57-8a41-{number:012x}-");
    let name = format!("{identity}{label}{number:010}");
    Contender::parse(&name, |counted| counted == label).expect("a name")
}

/// The data of a directory that names this successor.
fn data(successor: &str) -> Vec<u8> {
    format!("zookeeper-recipes election\nsuccessor {successor}\n").into_bytes()
}

#[test]
fn only_candidates_count_and_none_is_replaced() {
    let rule = FirstCandidate::default();
    for label in ["latch-", "standby-latch-"] {
        assert!(rule.counts(label), "{label}");
        assert!(!rule.hints().may_be_replaced(label), "{label}");
        assert_eq!(rule.hints().recipe(label), "election");
    }
    for label in ["", "lock-", "latch", "standby-"] {
        assert!(!rule.counts(label), "{label}");
    }
}

#[test]
fn candidate_steps_back_for_the_successor_that_is_behind_it() {
    let rule = FirstCandidate::default();
    let hints = rule.hints();
    let (me, behind) = (
        candidate("latch-", 5),
        [candidate("latch-", 6), candidate("latch-", 7)],
    );
    for (successor, steps_back, may) in [
        (me.name(), false, false),
        (behind[0].name(), true, true),
        (behind[1].name(), true, true),
        // Before it, gone, or no candidate at all.
        (candidate("latch-", 4).name(), false, false),
        (candidate("latch-", 8).name(), false, true),
        ("config", false, false),
    ] {
        let data = data(successor);
        assert_eq!(
            hints.steps_back(&me, &behind, Some(&data)),
            steps_back,
            "{successor}"
        );
        assert_eq!(hints.may_step_back(&me, Some(&data)), may, "{successor}");
    }
    for data in [&b""[..], b"of another program", b"successor x\n"] {
        assert!(!hints.steps_back(&me, &behind, Some(data)), "{data:?}");
        assert!(!hints.may_step_back(&me, Some(data)), "{data:?}");
    }
    // The data is not read yet.
    assert!(!hints.steps_back(&me, &behind, None));
    assert!(hints.may_step_back(&me, None));
}

#[test]
fn candidate_on_standby_steps_back_for_each_that_is_not() {
    let rule = FirstCandidate::standby();
    let hints = rule.hints();
    let standby = |number| candidate("standby-latch-", number);
    let me = standby(5);
    assert!(hints.may_step_back(&me, Some(b"")));
    assert!(!hints.steps_back(&me, &[standby(6), standby(7)], Some(b"")));
    assert!(hints.steps_back(&me, &[standby(6), candidate("latch-", 7)], Some(b"")));
    let chosen = data(me.name());
    assert!(!hints.steps_back(&me, &[candidate("latch-", 7)], Some(&chosen)));
    let other = data(standby(6).name());
    assert!(hints.steps_back(&me, &[standby(6)], Some(&other)));
}
