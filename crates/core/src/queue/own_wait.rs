//! The warning of a task that waits behind a hold of its own process.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The contender in the warning, if it has no znode.
pub(crate) const WITHOUT_ZNODE: &str = "a task without a znode";

/// Warns from time to time of the contenders that an attempt waits behind.
///
/// No recipe is reentrant. If a task acquires what it holds already, it waits behind itself. The
/// warning shows such a task.
pub(crate) struct OwnWait {
    began: Instant,
    longest: Duration,
    next_warning: Instant,
}

impl OwnWait {
    /// Begins to count the time of an attempt. The first warning comes after `longest`.
    pub(crate) fn begin(longest: Duration) -> OwnWait {
        let began = Instant::now();
        OwnWait {
            began,
            longest,
            next_warning: began + longest,
        }
    }

    /// Runs one wait of the attempt. `warn` gets the time since the attempt began.
    ///
    /// The caller pins the wait: see [`sync`](crate::sync).
    pub(crate) async fn during<T>(
        &mut self,
        mut wait: Pin<&mut impl Future<Output = T>>,
        warn: impl Fn(Duration),
    ) -> T {
        loop {
            tokio::select! {
                biased;
                done = &mut wait => return done,
                () = sleep_until(self.next_warning) => {}
            }
            self.next_warning = Instant::now() + self.longest;
            warn(self.began.elapsed());
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/own_wait.rs"]
mod tests;
