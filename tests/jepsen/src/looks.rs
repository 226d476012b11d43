//! The judgement of the clients' looks at their locks: a pure function.

use std::collections::{BTreeMap, BTreeSet};

use crate::checker::{Attempt, Look};

/// What a history shows of the looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// How many looks began after a newer holder had acquired the lock.
    pub after_newer: usize,
    /// The elements of those turns among them whose library said that the lock was held.
    pub wrong: BTreeSet<u64>,
    /// How many lost elements each late write is the cause of, by the element of that write.
    pub lost_by: BTreeMap<u64, usize>,
    /// How many elements were lost by a look that began before a newer holder had acquired the lock.
    pub lost_by_earlier_look: usize,
    /// How many elements were lost by a look that was wrong.
    pub lost_by_wrong_look: usize,
    /// The lost elements that no late write explains.
    pub unexplained: BTreeSet<u64>,
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
pub fn judge_looks(
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
        *looks.lost_by.entry(cause.element).or_default() += 1;
        match looks.wrong.contains(&cause.element) {
            true => looks.lost_by_wrong_look += 1,
            false => looks.lost_by_earlier_look += 1,
        }
    }
    looks
}

/// The first holder with a newer token, by the time of the acquisition, for each token that has one.
pub fn first_newer(history: &[Attempt]) -> BTreeMap<i64, &Attempt> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::checker::Outcome::{self, Acknowledged, Refused, Withheld};

    const fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// A turn whose element is its token.
    fn turn(token: i64, acquired: u64, look: Option<(u64, bool)>, fenced: Outcome) -> Attempt {
        let held = look.is_some_and(|(_, held)| held);
        let checked = if held { Acknowledged } else { Withheld };
        Attempt {
            element: token.unsigned_abs(),
            token,
            acquired: at(acquired),
            look: look.map(|(began, held)| Look {
                began: at(began),
                held,
                // The line of a paused client arrives late, which must not matter.
                heard: at(10_000),
            }),
            outcomes: [Acknowledged, checked, fenced],
            fault: None,
            ended: at(10_000),
        }
    }

    /// A paused holder, and the next one, which has acquired at 100.
    fn paused(look: Option<(u64, bool)>) -> [Attempt; 2] {
        let next = turn(2, 100, Some((105, true)), Acknowledged);
        [next, turn(1, 0, look, Refused)]
    }

    fn looks(history: &[Attempt]) -> (usize, Vec<u64>) {
        let looks = judge_looks(history, &BTreeSet::new(), &BTreeMap::new());
        (looks.after_newer, looks.wrong.into_iter().collect())
    }

    #[test]
    fn look_that_says_held_after_a_newer_holder_has_acquired_is_wrong() {
        assert_eq!(looks(&paused(Some((101, true)))), (1, vec![1]));
    }

    #[test]
    fn look_that_says_lost_after_a_newer_holder_has_acquired_is_counted_and_right() {
        assert_eq!(looks(&paused(Some((101, false)))), (1, vec![]));
    }

    #[test]
    fn look_before_a_newer_holder_has_acquired_is_right_however_late_its_line_arrives() {
        assert_eq!(looks(&paused(Some((99, true)))), (0, vec![]));
        // At the same time, the order is not known.
        assert_eq!(looks(&paused(Some((100, true)))), (0, vec![]));
        assert_eq!(looks(&paused(None)), (0, vec![]));
    }

    #[test]
    fn earlier_holder_and_another_turn_of_the_same_token_say_nothing_about_a_look() {
        let history = [
            turn(1, 0, Some((5, true)), Acknowledged),
            turn(2, 10, Some((15, true)), Acknowledged),
            turn(2, 11, Some((15, true)), Acknowledged),
        ];
        assert_eq!(looks(&history), (0, vec![]));
    }

    #[test]
    fn look_is_compared_to_the_first_acquisition_of_all_newer_holders() {
        let history = [
            turn(3, 50, Some((55, true)), Acknowledged),
            // It acquired the lock before the holder of token 3, and says so later.
            turn(2, 90, None, Refused),
            turn(1, 0, Some((60, true)), Refused),
        ];
        assert_eq!(first_newer(&history)[&1].token, 3);
        assert_eq!(looks(&history), (1, vec![1]));
    }

    #[test]
    fn lost_element_is_counted_to_the_look_of_the_late_write() {
        let judge = |look, lost: u64, overwritten_by: u64| {
            let overwritten = BTreeMap::from([(lost, vec![overwritten_by])]);
            judge_looks(&paused(Some(look)), &BTreeSet::from([lost]), &overwritten)
        };
        // The late write of 1 removes 2. Or it comes between the read and the write of 2.
        for (lost, overwritten_by) in [(2, 1), (1, 2)] {
            let early = judge((99, true), lost, overwritten_by);
            assert_eq!(early.lost_by, BTreeMap::from([(1, 1)]));
            assert_eq!(
                (early.lost_by_earlier_look, early.lost_by_wrong_look),
                (1, 0)
            );
            let wrong = judge((101, true), lost, overwritten_by);
            assert_eq!(
                (wrong.lost_by_earlier_look, wrong.lost_by_wrong_look),
                (0, 1)
            );
            assert!(early.unexplained.is_empty() && wrong.unexplained.is_empty());
        }
    }

    #[test]
    fn lost_element_without_a_late_write_is_unexplained() {
        let history = [
            turn(1, 0, Some((5, true)), Acknowledged),
            turn(2, 10, Some((15, true)), Acknowledged),
        ];
        let overwritten = BTreeMap::from([(1, vec![2])]);
        let looks = judge_looks(&history, &BTreeSet::from([1]), &overwritten);
        assert_eq!(looks.unexplained, BTreeSet::from([1]));
        assert_eq!(
            (looks.lost_by_earlier_look, looks.lost_by_wrong_look),
            (0, 0)
        );
    }
}
