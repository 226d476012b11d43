//! A long path between a host and the servers: each message takes longer, both ways.

use std::time::Duration;

/// How much longer each message takes, each way, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongPath {
    by: Duration,
    until: Duration,
}

impl LongPath {
    pub(crate) fn new(by: Duration, until: Duration) -> LongPath {
        LongPath { by, until }
    }

    /// How much longer a message takes that is sent now.
    pub(crate) fn delay(&self, now: Duration) -> Duration {
        if now < self.until {
            self.by
        } else {
            Duration::ZERO
        }
    }
}
