//! The outcome of a promise, and how long the suite waits.

use std::fmt;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// The path of a session's own znode begins with it. The znode is no contender.
pub(super) const OF_THE_SESSION: &str = "/zookeeper-recipes-session-";

/// How long a step may take that does not depend on the server's clock.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
/// How soon the next contender holds after a release: far sooner than by a session's expiry.
pub(super) const HANDOFF: Duration = Duration::from_secs(3);
/// More than any acquisition has awaits.
pub(super) const MAX_POLLS: usize = 40;

/// A broken promise, and the event that shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{promise}: {seen}")]
pub struct BrokenPromise {
    /// The promise.
    pub promise: &'static str,
    /// The event that breaks it.
    pub seen: String,
}

/// How the check of a promise ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The promise is kept.
    Kept,
    /// The event that breaks the promise.
    Broken(String),
    /// Why the promise was not checked.
    Skipped(&'static str),
}

/// The outcome of one promise: the event that breaks it, if it is broken.
pub(super) type Kept<T = ()> = Result<T, String>;

pub(super) fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Polls a future so many times, then drops it. `None` if it did not finish.
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
