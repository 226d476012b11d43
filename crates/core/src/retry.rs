//! How a request is repeated: until its outcome is known, with growing pauses.

use std::time::Duration;

use crate::server::error::ServerError;

/// The longest wait before a request is repeated.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// The first wait.
pub(crate) const FIRST: Duration = Duration::from_millis(20);

/// Sends a request again while it fails with an error that may pass, and returns the last result.
///
/// [`ServerError::is_unknown`] and [`ServerError::may_pass`] say which errors those are.
pub(crate) async fn retry<T, F>(
    passes: fn(&ServerError) -> bool,
    mut request: impl FnMut() -> F,
) -> Result<T, ServerError>
where
    F: Future<Output = Result<T, ServerError>>,
{
    let mut backoff = Backoff::up_to(LONGEST);
    loop {
        match request().await {
            Err(error) if passes(&error) => backoff.wait().await,
            result => return result,
        }
    }
}

/// Waits that double up to a limit.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
    /// How many retries come without a wait before the first wait.
    free: u32,
}

impl Backoff {
    /// Waits that double until they reach `most`.
    pub(crate) fn up_to(most: Duration) -> Backoff {
        Backoff {
            next: FIRST.min(most),
            most,
            free: 0,
        }
    }

    /// The same after `free` retries without a wait.
    ///
    /// For an event that is normal if it happens only a few times in a row.
    pub(crate) fn after(free: u32, most: Duration) -> Backoff {
        Backoff {
            free,
            ..Backoff::up_to(most)
        }
    }

    /// True if no wait has begun yet.
    pub(crate) fn is_new(&self) -> bool {
        self.next == FIRST.min(self.most)
    }

    /// Waits before the next retry.
    ///
    /// Cancel safe. A wait that is dropped counts.
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
