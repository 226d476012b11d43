//! How often each fault met each step of the protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The steps, in the order of an acquisition.
const STEPS: [&str; 12] = [
    "connect",
    "set watches",
    "create",
    "list",
    "read",
    "unwatch",
    "wait",
    "grant",
    "hold",
    "transact",
    "delete",
    "close",
];

/// The faults of one request. No caller asks for the others by itself.
const OF_REQUESTS: [&str; 5] = [
    "request lost",
    "reply lost",
    "request late",
    "reply late",
    "throttled",
];

/// The requests that they have to meet.
const REQUESTS: [&str; 5] = ["create", "list", "read", "transact", "delete"];

/// The faults of processes, servers and connections. They can meet every step.
const OF_OTHERS: [&str; 11] = [
    "asleep",
    "blocked",
    "cut off",
    "disconnected",
    "server cut off",
    "leader isolated",
    "server paused",
    "commits stalled",
    "election",
    "path long",
    "data lost",
];

/// The steps that a handshake serves.
const OF_HANDSHAKES: [&str; 4] = ["connect", "wait", "grant", "hold"];

/// The steps that a killed process has to be about.
///
/// Only workers of an assignment are killed. `set watches` is too rare for a thousand seeds of
/// each recipe. A worker that is about to close its session is never killed on purpose.
const OF_KILLED: [&str; 10] = [
    "connect", "create", "list", "read", "unwatch", "wait", "grant", "hold", "transact", "delete",
];

/// The steps at which a server may not know the outcome of a write. A contender that waits, is
/// granted or holds has written something else, such as a guarded write.
const OF_OUTCOME_HIDDEN: [&str; 6] = ["create", "wait", "grant", "hold", "transact", "delete"];

/// What meets in less than one of a thousand seeds.
const SELDOM: [(&str, &str); 4] = [
    ("data lost", "set watches"),
    ("path long", "set watches"),
    ("leader isolated", "set watches"),
    ("server cut off", "set watches"),
];

/// How often each fault met each step: the client was about the step when the fault came.
#[derive(Clone, Debug, Default)]
pub struct FaultsMet {
    counts: BTreeMap<(String, String), u64>,
}

impl FaultsMet {
    pub(crate) fn add(&mut self, fault: &str, step: &str, count: u64) {
        let pair = (fault.to_owned(), step.to_owned());
        *self.counts.entry(pair).or_default() += count;
    }

    pub(crate) fn counts(&self) -> &BTreeMap<(String, String), u64> {
        &self.counts
    }

    fn of(&self, fault: &str, step: &str) -> u64 {
        let pair = (fault.to_owned(), step.to_owned());
        self.counts.get(&pair).copied().unwrap_or(0)
    }

    /// The faults that never met a step that they have to meet in a run of many seeds.
    pub fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let each = |faults: &[&'static str], steps: &[&'static str]| -> Vec<_> {
            let pairs = faults
                .iter()
                .flat_map(|fault| steps.iter().map(|step| (*fault, *step)));
            pairs.collect()
        };
        let mut pairs = each(&OF_REQUESTS, &REQUESTS);
        pairs.extend(each(&OF_OTHERS, &STEPS));
        pairs.extend(each(&["handshake slow"], &OF_HANDSHAKES));
        pairs.extend(each(&["killed"], &OF_KILLED));
        pairs.extend(each(&["outcome hidden"], &OF_OUTCOME_HIDDEN));
        pairs.retain(|pair| !SELDOM.contains(pair) && self.of(pair.0, pair.1) == 0);
        pairs
    }
}

impl std::ops::AddAssign for FaultsMet {
    fn add_assign(&mut self, other: FaultsMet) {
        for (pair, count) in other.counts {
            *self.counts.entry(pair).or_default() += count;
        }
    }
}

/// A table: a row for each fault, and a column for each step.
impl fmt::Display for FaultsMet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "| {:15} |", "fault")?;
        for step in STEPS {
            write!(formatter, " {step:>8} |")?;
        }
        write!(formatter, "\n| :-- |{}", " --: |".repeat(STEPS.len()))?;
        let faults: BTreeSet<_> = self.counts.keys().map(|(fault, _)| fault).collect();
        for fault in faults {
            write!(formatter, "\n| {fault:15} |")?;
            for step in STEPS {
                let width = step.len().max(8);
                write!(formatter, " {:>width$} |", self.of(fault, step))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_that_never_met_is_missing() {
        let mut met = FaultsMet::default();
        let all = met.missing();
        for pair in [
            ("killed", "hold"),
            ("outcome hidden", "delete"),
            ("asleep", "close"),
        ] {
            assert!(all.contains(&pair), "{pair:?}");
        }
        for (fault, step) in all.iter().skip(1) {
            met.add(fault, step, 1);
        }
        assert_eq!(met.missing(), [all[0]]);
    }
}
