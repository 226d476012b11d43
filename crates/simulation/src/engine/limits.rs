//! The limits of a simulation. A run that exceeds one is in an endless loop.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// The limits of a simulation. By default there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most steps and requests at one instant of the clock.
    ///
    /// At four times this limit the simulation panics, in the task that sends the next request.
    pub at_one_instant: u64,
    /// The most requests of a process in a second of simulated time.
    pub requests_per_second: u64,
    /// The most changes that the ensemble commits. The history keeps this many.
    pub changes: usize,
    /// The most outstanding actions at one time.
    pub outstanding: usize,
    /// The longest time of the simulation, by the real clock.
    pub wall_clock: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            at_one_instant: u64::MAX / 4,
            requests_per_second: u64::MAX,
            changes: usize::MAX,
            outstanding: usize::MAX,
            wall_clock: Duration::MAX,
        }
    }
}

/// The counts that the limits apply to.
#[derive(Debug)]
pub(crate) struct Gauge {
    limits: Limits,
    began: Instant,
    at: Duration,
    done: u64,
    exceeded: watch::Sender<Option<String>>,
}

impl Gauge {
    pub(crate) fn new(limits: Limits) -> Gauge {
        Gauge {
            limits,
            began: Instant::now(),
            at: Duration::ZERO,
            done: 0,
            exceeded: watch::Sender::new(None),
        }
    }

    pub(crate) fn exceeded(&self) -> watch::Receiver<Option<String>> {
        self.exceeded.subscribe()
    }

    /// Counts something that is done at this time.
    pub(crate) fn count(&mut self, now: Duration) {
        const LOOK_EVERY: u64 = 1_024;
        if now != self.at {
            self.at = now;
            self.done = 0;
        }
        self.done += 1;
        let most = self.limits.at_one_instant;
        if self.done == most {
            self.exceed(|| {
                format!("{most} things were done at {now:?}, and the clock does not move")
            });
        }
        assert!(self.done < most * 4, "something never ends at {now:?}");
        if self.done % LOOK_EVERY == 0 && self.began.elapsed() > self.limits.wall_clock {
            let most = self.limits.wall_clock;
            self.exceed(|| format!("{now:?} of simulated time have taken more than {most:?}"));
        }
    }

    /// Reports how many requests this process sent in this second.
    pub(crate) fn sent(&mut self, process: &str, requests: u64) {
        if requests > self.limits.requests_per_second {
            self.exceed(|| format!("{process} sent {requests} requests within a second"));
        }
    }

    /// Reports how many changes have been committed.
    pub(crate) fn committed(&mut self, changes: usize) {
        if changes > self.limits.changes {
            self.exceed(|| format!("{changes} changes were committed"));
        }
    }

    /// Reports how many actions are outstanding.
    pub(crate) fn outstanding(&mut self, actions: usize) {
        if actions > self.limits.outstanding {
            self.exceed(|| format!("{actions} things are still to be done"));
        }
    }

    fn exceed(&self, text: impl FnOnce() -> String) {
        self.exceeded.send_if_modified(|exceeded| {
            let first = exceeded.is_none();
            if first {
                *exceeded = Some(text());
            }
            first
        });
    }
}
