//! The waits between two tries.

use std::time::Duration;

use zookeeper_recipes_core::Error;

const FIRST: Duration = Duration::from_millis(20);
const MOST: Duration = Duration::from_secs(1);

/// Waits that double, up to a limit.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff::up_to(MOST)
    }

    pub(crate) fn up_to(most: Duration) -> Backoff {
        Backoff { next: FIRST, most }
    }

    /// Waits, each time for twice as long.
    pub(crate) async fn wait(&mut self) {
        let wait = self.next;
        self.next = (wait * 2).min(self.most);
        tokio::time::sleep(wait).await;
    }

    /// As [`wait`](Self::wait), but for between half and all of that time, by this number.
    pub(crate) async fn wait_by(&mut self, number: u64) {
        let wait = self.next;
        self.next = (wait * 2).min(self.most);
        // The high bits of a product with the golden ratio are spread evenly.
        let part = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let part = u32::try_from(part).unwrap_or_default();
        tokio::time::sleep(wait / 2 + wait / 2 * part / 1024).await;
    }
}

/// True if another attempt may succeed. If the session is closed, the next attempt fails for good.
pub(crate) fn may_pass(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::SessionOver { .. })
}
