//! What makes a run fail.

use crate::report::Run;

/// The reasons for which the runs fail, in words.
pub(crate) fn failures(runs: &[Run]) -> Vec<String> {
    runs.iter().flat_map(failures_of).collect()
}

fn failures_of(run: &Run) -> Vec<String> {
    let mut reasons = Vec::new();
    if run.history.is_empty() {
        reasons.push("no turn was taken, so the run has shown nothing".to_owned());
    }
    if !run.misunderstood.is_empty() {
        reasons.push(format!("lines not understood: {:?}", run.misunderstood));
    }
    if !run.is_fenced() {
        reasons.push("the token has not kept the set".to_owned());
    }
    if run.foreign_times > 0 && !run.clocks {
        let times = run.foreign_times;
        reasons.push(format!(
            "{times} times of clients are not of this machine's clock"
        ));
    }
    if let Some(looks) = &run.looks {
        if !looks.unexplained.is_empty() {
            let elements = &looks.unexplained;
            reasons.push(format!("elements lost without a late write: {elements:?}"));
        }
        // Another library does not promise that its look is right.
        if run.is_ours && !looks.wrong.is_empty() {
            let elements = &looks.wrong;
            reasons.push(format!(
                "the lock was reported as held after a newer holder had acquired it, in the turns of \
                 the elements {elements:?}"
            ));
        }
    }
    let named = |reason: String| format!("{}: {reason}", run.library);
    reasons.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use zookeeper_recipes_jepsen::{Attempt, Looks, Outcome, Verdict};

    use super::*;

    fn run() -> Run {
        let turn = Attempt {
            element: 1,
            token: 1,
            acquired: Duration::ZERO,
            look: None,
            outcomes: [Outcome::Acknowledged; 3],
            fault: None,
            ended: Duration::ZERO,
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
            clocks: false,
            foreign_times: 0,
            misunderstood: Vec::new(),
        }
    }

    /// How many reasons there are after this change of a run without one.
    fn reasons(change: impl Fn(&mut Run)) -> usize {
        let mut run = run();
        change(&mut run);
        failures(&[run]).len()
    }

    #[test]
    fn wrong_look_of_ours_fails_the_run_and_one_of_another_library_does_not() {
        let wrong = |run: &mut Run| {
            let looks = run.looks.as_mut().expect("they are judged");
            looks.wrong.insert(1);
        };
        assert_eq!(reasons(|_| ()), 0);
        assert_eq!(reasons(wrong), 1);
        let of_another = |run: &mut Run| {
            run.is_ours = false;
            wrong(run);
        };
        assert_eq!(reasons(of_another), 0);
    }

    #[test]
    fn clocks_that_differ_fail_the_run_unless_it_falsifies_them() {
        let differ = |run: &mut Run| {
            run.looks = None;
            run.foreign_times = 1;
        };
        assert_eq!(reasons(differ), 1);
        let falsified = |run: &mut Run| {
            differ(run);
            run.clocks = true;
        };
        assert_eq!(reasons(falsified), 0);
    }

    #[test]
    fn each_other_reason_fails_the_run() {
        assert_eq!(reasons(|run| run.history.clear()), 1);
        assert_eq!(reasons(|run| run.misunderstood.push("hello".to_owned())), 1);
        assert_eq!(reasons(|run| run.in_order = false), 1);
        let lost = |run: &mut Run| run.verdicts[2].lost = BTreeSet::from([1]);
        assert_eq!(reasons(lost), 1);
        let unexplained = |run: &mut Run| {
            let looks = run.looks.as_mut().expect("they are judged");
            looks.unexplained.insert(1);
        };
        assert_eq!(reasons(unexplained), 1);
    }
}
