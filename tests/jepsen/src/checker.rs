//! The judgement of a history: a pure function.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::fault::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// The client writes without a look at its lock.
    Unchecked,
    /// The client asks its library before the write.
    Checked,
    /// The store compares tokens.
    Fenced,
}

impl Way {
    /// All ways, in the order of [`Attempt::outcomes`].
    pub(crate) const ALL: [Way; 3] = [Way::Unchecked, Way::Checked, Way::Fenced];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Acknowledged,
    /// The client did not send the write: its library said that the lock was lost.
    Withheld,
    /// The store refused the write: it had seen a newer token.
    Refused,
    /// The client ended in its turn, before the write.
    Unsent,
}

/// A client's question to its library whether it still holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// When the client read the clock, right before the question.
    pub(crate) began: Duration,
    /// The library's answer.
    pub(crate) held: bool,
}

/// One turn of a client. It adds one element to each set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// The element. No other attempt has the same one.
    pub(crate) element: u64,
    pub(crate) token: i64,
    /// When the client read the clock, right after its acquisition.
    pub(crate) acquired: Duration,
    /// The look at the lock, unless the client ended before the look.
    pub(crate) look: Option<Look>,
    /// The outcome of each [way](Way::ALL).
    pub(crate) outcomes: [Outcome; 3],
    /// The fault that was there at the write, or the last one before it.
    pub(crate) fault: Option<Fault>,
}

impl Attempt {
    /// True if the write arrived after the read of a newer holder.
    pub(crate) fn is_late(&self) -> bool {
        self.outcomes[Way::Fenced as usize] == Outcome::Refused
    }

    /// True if the write would have been late, and the client withheld it from the checked set.
    pub(crate) fn is_late_and_withheld(&self) -> bool {
        self.is_late() && self.outcomes[Way::Checked as usize] == Outcome::Withheld
    }
}

/// What a history shows of one way to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// How many writes the store acknowledged.
    pub(crate) acknowledged: usize,
    /// How many writes the client did not send.
    pub(crate) withheld: usize,
    /// How many writes the store refused.
    pub(crate) refused: usize,
    /// The elements of acknowledged writes that the set does not contain in the end.
    pub(crate) lost: BTreeSet<u64>,
    /// The elements in the set that no acknowledged write has added.
    pub(crate) unexpected: BTreeSet<u64>,
}

/// Judges the writes of one way by what the set contains in the end.
pub(crate) fn check(history: &[Attempt], way: Way, set: &BTreeSet<u64>) -> Verdict {
    let outcome = |attempt: &&Attempt| attempt.outcomes[way as usize];
    let count = |wanted| history.iter().filter(|it| outcome(it) == wanted).count();
    let acknowledged: BTreeSet<u64> = history
        .iter()
        .filter(|attempt| outcome(attempt) == Outcome::Acknowledged)
        .map(|attempt| attempt.element)
        .collect();
    Verdict {
        acknowledged: acknowledged.len(),
        withheld: count(Outcome::Withheld),
        refused: count(Outcome::Refused),
        lost: acknowledged.difference(set).copied().collect(),
        unexpected: set.difference(&acknowledged).copied().collect(),
    }
}

/// True if each fenced write that was acknowledged has a newer token than all before it.
///
/// `history` is in the order in which the writes arrived. Each hold writes once.
pub(crate) fn is_in_order(history: &[Attempt]) -> bool {
    let tokens = history.iter().filter_map(|attempt| {
        let outcome = attempt.outcomes[Way::Fenced as usize];
        (outcome == Outcome::Acknowledged).then_some(attempt.token)
    });
    let tokens: Vec<i64> = tokens.collect();
    tokens.windows(2).all(|pair| pair[0] < pair[1])
}

#[cfg(test)]
#[path = "../tests/unit/checker.rs"]
mod tests;
