//! How a request is repeated: until its outcome is known, with growing pauses.

use std::time::Duration;

use crate::server::error::ServerError;

/// The first wait before a request is repeated.
pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(20);

/// Sends a request again while it fails with an error that `may_pass`, and returns the last result.
pub(crate) async fn retry<T, F>(
    may_pass: fn(&ServerError) -> bool,
    mut request: impl FnMut() -> F,
) -> Result<T, ServerError>
where
    F: Future<Output = Result<T, ServerError>>,
{
    let mut backoff = Backoff::default();
    loop {
        match request().await {
            Err(error) if may_pass(&error) => backoff.wait().await,
            result => return result,
        }
    }
}

/// Waits that double, from 20 milliseconds up to a limit, which is one second by default.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
    /// How many waits are left out before the first wait.
    left_out: u32,
    has_waited: bool,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff::up_to(Duration::from_secs(1))
    }
}

impl Backoff {
    /// Waits that double until they reach `longest`.
    pub fn up_to(longest: Duration) -> Backoff {
        Backoff {
            next: FIRST_WAIT.min(longest),
            longest,
            left_out: 0,
            has_waited: false,
        }
    }

    /// These waits, but the first few are left out.
    ///
    /// For an event that is normal if it happens only a few times in a row.
    pub(crate) fn skip_first(self, left_out: u32) -> Backoff {
        Backoff { left_out, ..self }
    }

    /// True if no wait has begun yet.
    pub(crate) fn is_new(&self) -> bool {
        !self.has_waited
    }

    /// Waits before the next retry.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again. A wait that is dropped counts.
    pub async fn wait(&mut self) {
        if let Some(wait) = self.next_wait() {
            tokio::time::sleep(wait).await;
        }
    }

    /// The next wait, for a caller that waits by itself. `None` if it is left out.
    pub(crate) fn next_wait(&mut self) -> Option<Duration> {
        if let Some(left) = self.left_out.checked_sub(1) {
            self.left_out = left;
            return None;
        }
        self.has_waited = true;
        let wait = self.next;
        self.next = (wait * 2).min(self.longest);
        Some(wait)
    }
}

#[cfg(test)]
#[path = "../tests/unit/retry.rs"]
mod tests;
