//! The holders, by their own account.

use std::sync::{Mutex, MutexGuard, PoisonError};

use zookeeper_recipes_core::{FencingToken, Hold};

use super::promise::Kept;

/// The holders, as each has noted itself.
#[derive(Default)]
pub(super) struct Inside(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    holders: usize,
    blockers: usize,
    most: usize,
    tokens: Vec<FencingToken>,
}

impl Inside {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, blocks: bool, hold: &Hold) -> Kept {
        let mut seen = self.lock();
        if seen.blockers > 0 || (blocks && seen.holders > 0) {
            return Err("held beside what must be held alone".to_owned());
        }
        if blocks {
            seen.blockers += 1;
            return Ok(());
        }
        seen.holders += 1;
        seen.most = seen.most.max(seen.holders);
        seen.tokens.push(hold.fencing_token());
        Ok(())
    }

    /// True if as many contenders held together as may, of this many contenders.
    pub(super) fn within(&self, holders: Option<usize>, contenders: usize) -> Kept {
        let Seen { most, tokens, .. } = &*self.lock();
        let may = holders.unwrap_or(contenders);
        if *most > may {
            return Err(format!("{most} held at a time, where {may} may"));
        }
        if *most < may.min(2) {
            return Err(format!(
                "never more than {most} held at a time, where {may} may"
            ));
        }
        if holders == Some(1) && !tokens.is_sorted_by(|earlier, later| earlier < later) {
            return Err(format!("the fencing tokens do not grow: {tokens:?}"));
        }
        Ok(())
    }

    pub(super) fn leave(&self, blocks: bool) {
        let mut seen = self.lock();
        match blocks {
            true => seen.blockers -= 1,
            false => seen.holders -= 1,
        }
    }
}
