//! Tests of `src/judgement.rs`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::checker::{Attempt, Outcome, Verdict};
use crate::looks::Looks;

/// A run that nothing speaks against.
fn run() -> Run {
    let turn = Attempt {
        element: 1,
        token: 1,
        acquired: Duration::ZERO,
        look: None,
        outcomes: [Outcome::Acknowledged; 3],
        fault: None,
    };
    Run {
        library: "a library".to_owned(),
        is_ours: true,
        history: vec![turn],
        verdicts: [(); 3].map(|()| Verdict::default()),
        failures: 0,
        faults: Vec::new(),
        in_order: true,
        looks: Some(Looks::default()),
        foreign_times: 0,
        misunderstood: Vec::new(),
    }
}

fn looks(run: &mut Run) -> &mut Looks {
    run.looks.as_mut().expect("they are judged")
}

type Change = fn(&mut Run);

#[test]
fn each_reason_fails_the_run() {
    let changes: [(Change, &str); 8] = [
        (|run| run.history.clear(), "no turn was taken"),
        (|run| run.misunderstood.push("hello".to_owned()), "hello"),
        (|run| run.in_order = false, "the token has not kept the set"),
        (
            |run| run.verdicts[2].lost = BTreeSet::from([1]),
            "the token has not kept the set",
        ),
        (
            |run| run.verdicts[0].unexpected = BTreeSet::from([1]),
            "the token has not kept the set",
        ),
        (|run| run.foreign_times = 1, "not of this machine's clock"),
        (
            |run| looks(run).unexplained = BTreeSet::from([1]),
            "without a late write",
        ),
        (
            |run| looks(run).wrong = BTreeSet::from([1]),
            "after a newer holder had acquired it",
        ),
    ];
    for (change, reason) in changes {
        let mut run = run();
        change(&mut run);
        let failed = failures(&[run]);
        assert!(
            matches!(&*failed, [only] if only.starts_with("a library: ") && only.contains(reason)),
            "{reason}: {failed:?}"
        );
    }
}

#[test]
fn good_run_and_wrong_look_of_another_library_fail_nothing() {
    let mut another = run();
    another.is_ours = false;
    looks(&mut another).wrong.insert(1);
    assert!(failures(&[run(), another]).is_empty());
}
