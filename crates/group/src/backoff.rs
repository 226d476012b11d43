//! The waits between two tries.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(20);
const MOST: Duration = Duration::from_secs(1);

/// Waits that double, up to a second.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { next: FIRST }
    }

    /// Waits, each time for twice as long.
    pub(crate) async fn wait(&mut self) {
        let wait = self.next;
        self.next = (wait * 2).min(MOST);
        tokio::time::sleep(wait).await;
    }
}
