//! Whose turn it is to hold: a pure judge of exclusion, order and tokens.

use std::collections::{BTreeSet, VecDeque};

use anyhow::ensure;
use zookeeper_recipes_core::FencingToken;

/// The contenders of one lock, each a writer or a reader: which of them hold, which wait, and in
/// which order.
///
/// A contender enters after its acquire has returned, and leaves before it calls release.
#[derive(Debug)]
pub struct Turns {
    /// True for each contender that excludes all others.
    writes: Vec<bool>,
    /// The contenders in the order in which they must hold; `None` if the lock promises no order.
    queue: Option<VecDeque<usize>>,
    waiting: BTreeSet<usize>,
    holding: BTreeSet<usize>,
    /// The newest token of all holds so far, and of the writers' holds.
    newest: Option<FencingToken>,
    newest_write: Option<FencingToken>,
}

impl Turns {
    /// The turns of these contenders, none of which has asked for the lock yet.
    pub fn new(writes: Vec<bool>, in_order: bool) -> Turns {
        Turns {
            writes,
            queue: in_order.then(VecDeque::new),
            waiting: BTreeSet::new(),
            holding: BTreeSet::new(),
            newest: None,
            newest_write: None,
        }
    }

    /// The number of all contenders.
    pub fn contenders(&self) -> usize {
        self.writes.len()
    }

    /// The contenders that hold.
    pub fn holding(&self) -> &BTreeSet<usize> {
        &self.holding
    }

    /// The contenders that wait.
    pub fn waiting(&self) -> &BTreeSet<usize> {
        &self.waiting
    }

    /// A contender asks for the lock, behind all others.
    pub fn asks(&mut self, who: usize) {
        self.waiting.insert(who);
        if let Some(queue) = &mut self.queue {
            queue.push_back(who);
        }
    }

    /// Takes the order of the queue from the server.
    ///
    /// # Errors
    ///
    /// If the queue is not made of the contenders that wait or hold.
    pub fn queued(&mut self, queue: VecDeque<usize>) -> anyhow::Result<()> {
        let found: BTreeSet<usize> = queue.iter().copied().collect();
        let expected: BTreeSet<usize> = self.waiting.union(&self.holding).copied().collect();
        ensure!(
            found == expected && queue.len() == expected.len(),
            "contenders {queue:?} are in the queue, instead of {expected:?}"
        );
        self.queue = self.queue.is_some().then_some(queue);
        Ok(())
    }

    /// The contenders that must hold now and do not yet. Any one of them, if there is no order.
    pub fn due(&self) -> BTreeSet<usize> {
        let Some(queue) = &self.queue else {
            return match self.holding.is_empty() {
                true => self.waiting.clone(),
                false => BTreeSet::new(),
            };
        };
        let mut first = queue.iter().copied();
        let readers = first.clone().take_while(|&who| !self.writes[who]);
        let mut hold: BTreeSet<usize> = readers.collect();
        if hold.is_empty() {
            hold.extend(first.next());
        }
        hold.difference(&self.holding).copied().collect()
    }

    /// A contender holds.
    ///
    /// # Errors
    ///
    /// If it is not its turn, or its token is not newer than the token of each earlier hold that
    /// excludes this one.
    pub fn enters(&mut self, who: usize, token: FencingToken) -> anyhow::Result<()> {
        let due = self.due();
        ensure!(
            due.contains(&who),
            "{who} holds, while {due:?} should, and {:?} do",
            self.holding
        );
        let excluded = match self.writes[who] {
            true => self.newest,
            false => self.newest_write,
        };
        ensure!(
            excluded.is_none_or(|older| older < token),
            "{who} holds by token {token}, which is no newer than {excluded:?}"
        );
        self.newest = self.newest.max(Some(token));
        if self.writes[who] {
            self.newest_write = Some(token);
        }
        self.waiting.remove(&who);
        self.holding.insert(who);
        Ok(())
    }

    /// A holder is about to release.
    ///
    /// # Errors
    ///
    /// If it does not hold.
    pub fn leaves(&mut self, who: usize) -> anyhow::Result<()> {
        ensure!(self.holding.remove(&who), "{who} does not hold");
        if let Some(queue) = &mut self.queue {
            queue.retain(|&other| other != who);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contenders who have asked in the order of their numbers.
    fn turns(writes: &[bool], in_order: bool) -> Turns {
        let mut turns = Turns::new(writes.to_vec(), in_order);
        (0..writes.len()).for_each(|who| turns.asks(who));
        turns
    }

    fn complaint(outcome: anyhow::Result<()>) -> String {
        outcome.expect_err("a promise is not kept").to_string()
    }

    #[test]
    fn one_after_the_other_with_newer_tokens_is_as_promised() -> anyhow::Result<()> {
        let mut turns = turns(&[true; 3], true);
        for (who, token) in [(0, 3), (1, 5), (2, 9)] {
            turns.enters(who, token.into())?;
            turns.leaves(who)?;
        }
        assert!(turns.due().is_empty());
        Ok(())
    }

    #[test]
    fn second_holder_is_named_with_the_first() -> anyhow::Result<()> {
        for in_order in [false, true] {
            let mut turns = turns(&[true; 2], in_order);
            turns.enters(0, 3.into())?;
            assert_eq!(
                complaint(turns.enters(1, 4.into())),
                "1 holds, while {} should, and {0} do"
            );
        }
        Ok(())
    }

    #[test]
    fn holder_out_of_turn_is_found_if_an_order_is_promised() -> anyhow::Result<()> {
        assert_eq!(
            complaint(turns(&[true; 3], true).enters(1, 3.into())),
            "1 holds, while {0} should, and {} do"
        );
        turns(&[true; 3], false).enters(1, 3.into())
    }

    #[test]
    fn token_that_does_not_grow_is_found() -> anyhow::Result<()> {
        for token in [7, 6] {
            let mut turns = turns(&[true; 2], true);
            turns.enters(0, 7.into())?;
            turns.leaves(0)?;
            let complaint = complaint(turns.enters(1, token.into()));
            assert!(complaint.contains("no newer"), "{complaint}");
        }
        Ok(())
    }

    #[test]
    fn readers_hold_together_up_to_the_next_writer() -> anyhow::Result<()> {
        let mut turns = turns(&[true, false, false, true, false], true);
        assert_eq!(turns.due(), [0].into());
        turns.enters(0, 1.into())?;
        turns.leaves(0)?;
        assert_eq!(turns.due(), [1, 2].into());
        // A reader's token need only be newer than the last writer's.
        turns.enters(2, 9.into())?;
        turns.enters(1, 8.into())?;
        turns.leaves(1)?;
        assert!(turns.due().is_empty());
        turns.leaves(2)?;
        assert_eq!(turns.due(), [3].into());
        Ok(())
    }

    #[test]
    fn queue_of_other_contenders_is_refused() -> anyhow::Result<()> {
        let mut turns = turns(&[true; 2], true);
        turns.queued([1, 0].into())?;
        assert_eq!(turns.due(), [1].into());
        assert!(turns.queued([0].into()).is_err());
        assert!(turns.queued([0, 1, 1].into()).is_err());
        Ok(())
    }
}
