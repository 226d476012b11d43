//! A caller that does not poll its future for a while, as a task does that awaits something else.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, Sleep, sleep_until};

/// A future that is not polled for a while now and then.
pub(crate) struct Neglected<F> {
    future: Pin<Box<F>>,
    rng: Rng,
    /// The longest time without a poll. Without one, the future is polled as others are.
    longest: Option<Duration>,
    /// When the last of these times ends.
    ends: Instant,
    rest: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Neglected<F> {
    pub(crate) fn new(
        future: F,
        rng: Rng,
        longest: Option<Duration>,
        ends: Instant,
    ) -> Neglected<F> {
        Neglected {
            future: Box::pin(future),
            rng,
            longest,
            ends,
            rest: None,
        }
    }

    /// Draws whether a time without a poll begins now.
    fn draw(&mut self) -> Option<Pin<Box<Sleep>>> {
        let longest = u64::try_from(self.longest?.as_millis()).unwrap_or(u64::MAX);
        if self.rng.u8(..4) > 0 {
            return None;
        }
        let lasts = match self.rng.bool() {
            true => self.rng.u64(0..=longest),
            false => self.rng.u64(0..=100),
        };
        let until = Instant::now() + Duration::from_millis(lasts);
        Some(Box::pin(sleep_until(until.min(self.ends))))
    }
}

impl<F: Future> Future for Neglected<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        loop {
            if let Some(rest) = &mut self.rest {
                std::task::ready!(rest.as_mut().poll(context));
            }
            if let Poll::Ready(output) = self.future.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            self.rest = self.draw();
            if self.rest.is_none() {
                return Poll::Pending;
            }
        }
    }
}
