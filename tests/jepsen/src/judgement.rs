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
    if run.foreign_times > 0 {
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
#[path = "../tests/unit/judgement.rs"]
mod tests;
