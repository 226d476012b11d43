//! What turns cost: processor time, switches.
//!
//! Client and server share the processors with each other and with other processes. So the
//! processor time says more about the cost of a turn than the time that the turn takes.

use std::ops::AddAssign;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) turns: u64,
    /// The processor time of the library's process.
    pub(crate) client: Duration,
    /// The processor time of the servers.
    pub(crate) server: Duration,
    /// The turns that were measured, which are fewer.
    pub(crate) measured: u64,
    /// The voluntary switches of the library's process, for those.
    pub(crate) switches: u64,
    /// How long each took that is measured, in microseconds.
    pub(crate) each: Vec<u32>,
}

impl Cost {
    /// One of the times for one turn, in microseconds.
    pub(crate) fn of_a_turn(&self, time: Duration) -> Option<f64> {
        (self.turns > 0).then(|| time.as_secs_f64() * 1e6 / self.turns as f64)
    }

    /// The voluntary switches for one turn.
    pub(crate) fn switches(&self) -> Option<f64> {
        (self.measured > 0).then(|| self.switches as f64 / self.measured as f64)
    }

    /// The time in milliseconds within which this share of the turns ended; `None` if there are too
    /// few turns to say it.
    pub(crate) fn percentile(&self, share: f64) -> Option<f64> {
        let mut each = self.each.clone();
        each.sort_unstable();
        let later = ((1.0 - share) * each.len() as f64) as usize;
        let place = each.len().checked_sub(later + 1)?;
        (later > 0).then(|| f64::from(each[place]) / 1e3)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.turns += other.turns;
        self.client += other.client;
        self.server += other.server;
        self.measured += other.measured;
        self.switches += other.switches;
        self.each.extend(other.each);
    }
}
