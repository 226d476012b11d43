//! A clock that stands still. Timers fire when a test says so.

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::sync::watch;

pub use shuttle_tokio::time::{Duration, Instant, MissedTickBehavior};

shuttle::lazy_static! {
    /// How often this schedule has called [`tick`].
    static ref TICKS: watch::Sender<u64> = watch::Sender::new(0);
}

/// Has each timer fire, and each interval tick once more.
pub fn tick() {
    TICKS.send_modify(|ticks| *ticks += 1);
}

/// Waits for the next [`tick`].
async fn next(mut ticks: watch::Receiver<u64>) {
    if ticks.changed().await.is_err() {
        pending().await
    }
}

/// A timer, which fires at the next [`tick`].
pub struct Sleep(Pin<Box<dyn Future<Output = ()> + Send + Sync>>);

/// A timer.
pub fn sleep(_: Duration) -> Sleep {
    Sleep(Box::pin(next(TICKS.subscribe())))
}

/// A timer.
pub fn sleep_until(_: Instant) -> Sleep {
    sleep(Duration::ZERO)
}

impl Sleep {
    /// Sets the timer anew.
    pub fn reset(mut self: Pin<&mut Self>, _: Instant) {
        *self = sleep(Duration::ZERO);
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sleep")
    }
}

/// A future with a time limit, which does not pass.
#[derive(Debug)]
pub struct Timeout<F>(Pin<Box<F>>);

/// A future with a time limit.
pub fn timeout<F: Future>(_: Duration, future: F) -> Timeout<F> {
    Timeout(Box::pin(future))
}

/// A future with a time limit.
pub fn timeout_at<F: Future>(_: Instant, future: F) -> Timeout<F> {
    Timeout(Box::pin(future))
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, error::Elapsed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context).map(Ok)
    }
}

/// Ticks, each of which comes by [`tick`].
#[derive(Debug)]
pub struct Interval(watch::Receiver<u64>);

/// Ticks, the first one at this time.
pub fn interval_at(_: Instant, _: Duration) -> Interval {
    Interval(TICKS.subscribe())
}

impl Interval {
    /// Waits for the next tick.
    pub async fn tick(&mut self) {
        if self.0.changed().await.is_err() {
            pending().await
        }
    }

    /// Sets what happens to ticks that are late.
    pub fn set_missed_tick_behavior(&mut self, _: MissedTickBehavior) {}

    /// Sets the next tick anew.
    pub fn reset_after(&mut self, _: Duration) {}
}

/// The errors of time limits.
pub mod error {
    pub use shuttle_tokio::time::error::Elapsed;
}
