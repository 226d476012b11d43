//! Waiting for what must come, and for no longer.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Longer than anything here may take: a test that gets there has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must not hang.
pub async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    match timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}

/// Waits until a condition holds.
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let met = async {
        while !condition().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    in_time(what, met).await;
}

/// A number that the environment may give.
pub fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is {value:?}, which is no number")))
}

/// Drops a future after that many polls, if any number is given; counts the polls.
///
/// The call yields `None` if the future was not finished by then.
pub async fn dropped_after<T>(
    limit: Option<usize>,
    work: impl Future<Output = T>,
    polls: &mut usize,
) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        if limit == Some(*polls) {
            return Poll::Ready(None);
        }
        *polls += 1;
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if limit == Some(*polls) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
