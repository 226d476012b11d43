//! The clock of this process, and its difference from the ensemble's.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use zookeeper_recipes_core::InvalidInput;

use super::record::{CLOCK, milliseconds};

/// A clock that slots are read from.
#[derive(Clone)]
pub(super) struct Clock {
    pub(super) now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// How much it may differ from the ensemble's clock.
    pub(super) may_differ: Duration,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock {
            now: Arc::new(SystemTime::now),
            may_differ: Duration::from_secs(60),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Clock")
            .field("may_differ", &self.may_differ)
            .finish_non_exhaustive()
    }
}

impl Clock {
    /// The time in milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        milliseconds((self.now)())
    }

    /// Refuses a clock that differs too much from the ensemble's.
    ///
    /// The ensemble's clock showed `ensemble` at some time between `before` and now by this clock.
    /// So a slow answer is no difference.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`], which says by how much the clocks differ.
    pub(super) fn refuse_if_wrong(&self, before: u64, ensemble: i64) -> Result<(), InvalidInput> {
        let ensemble = u64::try_from(ensemble).unwrap_or_default();
        let ahead = before.saturating_sub(ensemble);
        let behind = ensemble.saturating_sub(self.now());
        if u128::from(ahead.max(behind)) <= self.may_differ.as_millis() {
            return Ok(());
        }
        let (difference, side) = match ahead > behind {
            true => (ahead, "ahead of"),
            false => (behind, "behind"),
        };
        let difference = Duration::from_millis(difference);
        let value = format!("{difference:.1?} {side} the ensemble's");
        let problem = format!(
            "may differ by {:?} at most: correct the clock of this machine or of the servers, \
             or allow a larger difference",
            self.may_differ
        );
        Err(InvalidInput::new(CLOCK, value, problem))
    }
}
