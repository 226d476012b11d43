//! How long to wait before trying again.

use std::time::Duration;

/// The first wait.
pub(crate) const FIRST: Duration = Duration::from_millis(20);

/// Waits that double up to a limit.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
    /// How many times there is no wait yet.
    free: u32,
}

impl Backoff {
    pub(crate) fn up_to(most: Duration) -> Backoff {
        Backoff {
            next: FIRST.min(most),
            most,
            free: 0,
        }
    }

    /// For what may well happen so many times in a row without anything being wrong.
    pub(crate) fn after(free: u32, most: Duration) -> Backoff {
        Backoff {
            free,
            ..Backoff::up_to(most)
        }
    }

    /// Whether it has not waited yet.
    pub(crate) fn is_new(&self) -> bool {
        self.next == FIRST.min(self.most)
    }

    /// Waits for as long as it is this time.
    ///
    /// Cancel safe; a wait that was cut short counts.
    pub(crate) async fn wait(&mut self) {
        if let Some(left) = self.free.checked_sub(1) {
            self.free = left;
            return;
        }
        let wait = self.next;
        self.next = (wait * 2).min(self.most);
        tokio::time::sleep(wait).await;
    }
}
