//! What a promise comes to, and for how long the suite waits.

use std::fmt;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What the name of a znode ends with that is the session's, and no contender's.
pub(super) const OF_THE_SESSION: &str = "-session-lock-2147483647";

/// How long anything may take that the recipe, and not the server's clock, decides.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
/// More than any acquisition has awaits.
pub(super) const MOST_POLLS: usize = 40;

/// A promise that was not kept, and how that showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    /// The promise.
    pub promise: &'static str,
    /// What was seen instead.
    pub seen: String,
}

impl fmt::Display for BrokenPromise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.promise, self.seen)
    }
}

impl std::error::Error for BrokenPromise {}

/// What one promise came to: an account of what was seen if it was not kept.
pub(super) type Kept<T = ()> = Result<T, String>;

pub(super) fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Polls a future so many times and drops it then; `None` where it was not finished by then.
pub(super) async fn polled<T>(work: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut work = pin!(work);
    let mut polls = 0;
    std::future::poll_fn(|context| {
        polls += 1;
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polls == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
