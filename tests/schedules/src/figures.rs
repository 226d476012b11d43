//! What has happened in a run, counted.

use std::fmt;

/// What has happened in a run, counted: a run in which nothing happens proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Holds that were granted.
    pub grants: u64,
    /// Attempts that ended with an error.
    pub errors: u64,
    /// Attempts that were dropped half-way.
    pub aborted: u64,
    /// Holds that were lost.
    pub losses: u64,
    /// Guarded writes that were committed.
    pub guarded_writes: u64,
    /// Guarded writes that were refused.
    pub refused_writes: u64,
    /// Writes that a store refused for their token.
    pub stale_tokens: u64,
    /// Contenders' znodes that were deleted by hand.
    pub deleted_by_hand: u64,
    /// Sessions that came to their end by expiry.
    pub expired: u64,
    /// How often two recipes were held together.
    pub together: u64,
    /// How often it was changed how much can be held.
    pub resized: u64,
    /// Sessions that were left to the next process.
    pub left: u64,
    /// Sessions that the next process has resumed.
    pub resumed: u64,
    /// Holds that the next process has taken over.
    pub inherited: u64,
    /// Terms that leaders have worked for.
    pub terms: u64,
    /// How often observers were notified of who leads.
    pub news: u64,
    /// The longest time that a call took beside faults that never heal, in percent of its bound.
    pub longest_share: u64,
}

impl Figures {
    /// All sums, and the longest share last.
    pub(crate) fn numbers_mut(&mut self) -> [&mut u64; 17] {
        [
            &mut self.grants,
            &mut self.errors,
            &mut self.aborted,
            &mut self.losses,
            &mut self.guarded_writes,
            &mut self.refused_writes,
            &mut self.stale_tokens,
            &mut self.deleted_by_hand,
            &mut self.expired,
            &mut self.together,
            &mut self.resized,
            &mut self.left,
            &mut self.resumed,
            &mut self.inherited,
            &mut self.terms,
            &mut self.news,
            &mut self.longest_share,
        ]
    }
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, mut other: Figures) {
        let longest_share = self.longest_share.max(other.longest_share);
        for (sum, number) in self.numbers_mut().into_iter().zip(other.numbers_mut()) {
            *sum += *number;
        }
        self.longest_share = longest_share;
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} grants, {} lost; {} attempts failed, {} dropped; {} guarded writes, {} refused; \
             {} stale tokens refused; {} sessions expired, {} znodes deleted by hand; {} held \
             together; {} resized; {} sessions left, {} resumed, {} holds inherited; {} terms, {} news of leaders",
            self.grants,
            self.losses,
            self.errors,
            self.aborted,
            self.guarded_writes,
            self.refused_writes,
            self.stale_tokens,
            self.expired,
            self.deleted_by_hand,
            self.together,
            self.resized,
            self.left,
            self.resumed,
            self.inherited,
            self.terms,
            self.news,
        )?;
        match self.longest_share {
            0 => Ok(()),
            share => write!(formatter, "; the longest call took {share} % of its bound"),
        }
    }
}
