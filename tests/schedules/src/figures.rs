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
    /// Terms that leaders have worked for.
    pub terms: u64,
    /// How often observers were notified of who leads.
    pub news: u64,
    /// Overviews that were compared with what was committed.
    pub looks: u64,
    /// Circles of waits that they have shown.
    pub circles: u64,
    /// The longest time that something with a bound took, in percent of its bound: a call beside
    /// faults that never heal, or the way from a worker's death to new owners.
    pub longest_share: u64,
}

impl Figures {
    /// All figures with their names: what lines, tables and [tallies](crate::Tally) call them.
    pub(crate) fn named_mut(&mut self) -> [(&'static str, &mut u64); 16] {
        [
            ("holds granted", &mut self.grants),
            ("holds lost", &mut self.losses),
            ("attempts that failed", &mut self.errors),
            ("attempts that were dropped half-way", &mut self.aborted),
            ("guarded writes", &mut self.guarded_writes),
            ("guarded writes that were refused", &mut self.refused_writes),
            (
                "writes that a store refused for their token",
                &mut self.stale_tokens,
            ),
            ("sessions that expired", &mut self.expired),
            (
                "contenders' znodes that were deleted by hand",
                &mut self.deleted_by_hand,
            ),
            (
                "times that two recipes were held together",
                &mut self.together,
            ),
            (
                "times that the number of permits changed",
                &mut self.resized,
            ),
            ("terms of leaders", &mut self.terms),
            ("news of who leads", &mut self.news),
            ("looks at all queues", &mut self.looks),
            ("circles that looks have shown", &mut self.circles),
            ("longest share of a bound, in %", &mut self.longest_share),
        ]
    }

    /// All figures with their names.
    pub(crate) fn named(mut self) -> [(&'static str, u64); 16] {
        self.named_mut().map(|(name, number)| (name, *number))
    }
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        let longest_share = self.longest_share.max(other.longest_share);
        for ((_, sum), (_, number)) in self.named_mut().into_iter().zip(other.named()) {
            *sum += number;
        }
        self.longest_share = longest_share;
    }
}

/// All figures in a line.
impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self
            .named()
            .map(|(name, number)| format!("{name}: {number}"));
        write!(formatter, "{}", all.join("; "))
    }
}
