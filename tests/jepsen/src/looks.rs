//! The judgement of the clients' looks at their locks: a pure function.

use std::collections::{BTreeMap, BTreeSet};

use crate::checker::{Attempt, Look};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looks {
    /// How many looks began after a newer holder had acquired the lock.
    pub(crate) after_newer: usize,
    /// The elements of those turns among them whose library said that the lock was held.
    pub(crate) wrong: BTreeSet<u64>,
    /// How many elements were lost by a look that began before a newer holder had acquired the lock.
    pub(crate) lost_by_earlier_look: usize,
    /// How many elements were lost by a look that was wrong.
    pub(crate) lost_by_wrong_look: usize,
    /// The lost elements that no late write explains.
    pub(crate) unexplained: BTreeSet<u64>,
}

/// Judges the looks of a history.
///
/// A look is wrong if it began after a newer holder had acquired the lock, and the library said that
/// the lock was held. The client reads the clock before its look, and the newer holder reads the same
/// clock after its acquisition. So a pause of either cannot make a right look wrong. It can hide a
/// wrong one.
///
/// `lost` has the elements that the checked set has lost, and `overwritten_by` the elements of the
/// writes that removed each, in order.
pub(crate) fn judge_looks(
    history: &[Attempt],
    lost: &BTreeSet<u64>,
    overwritten_by: &BTreeMap<u64, Vec<u64>>,
) -> Looks {
    let newer = first_newer(history);
    let is_after_newer = |attempt: &Attempt, look: Look| {
        let newer = newer.get(&attempt.token);
        newer.is_some_and(|newer| newer.acquired < look.began)
    };
    let mut looks = Looks::default();
    for attempt in history {
        let Some(look) = attempt.look else { continue };
        if is_after_newer(attempt, look) {
            looks.after_newer += 1;
            if look.held {
                looks.wrong.insert(attempt.element);
            }
        }
    }
    let attempts: BTreeMap<u64, &Attempt> = history.iter().map(|it| (it.element, it)).collect();
    for element in lost {
        let removed_by = overwritten_by.get(element).into_iter().flatten().rev();
        let suspects = std::iter::once(element).chain(removed_by);
        let mut suspects = suspects.filter_map(|suspect| attempts.get(suspect));
        let Some(cause) = suspects.find(|suspect| suspect.is_late()) else {
            looks.unexplained.insert(*element);
            continue;
        };
        match looks.wrong.contains(&cause.element) {
            true => looks.lost_by_wrong_look += 1,
            false => looks.lost_by_earlier_look += 1,
        }
    }
    looks
}

/// The first holder with a newer token, by the time of the acquisition, for each token that has one.
pub(crate) fn first_newer(history: &[Attempt]) -> BTreeMap<i64, &Attempt> {
    let mut attempts: Vec<&Attempt> = history.iter().collect();
    attempts.sort_by_key(|attempt| std::cmp::Reverse(attempt.token));
    let mut found = BTreeMap::new();
    let mut first: Option<&Attempt> = None;
    for of_one_token in attempts.chunk_by(|one, other| one.token == other.token) {
        if let Some(first) = first {
            found.insert(of_one_token[0].token, first);
        }
        let all = first.into_iter().chain(of_one_token.iter().copied());
        first = all.min_by_key(|attempt| attempt.acquired);
    }
    found
}
