//! A process, which can sleep, and its clock.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use super::turns::TaskId;
use crate::wire::network::HostId;

/// A process: the place of its host in the network, and its place in the world.
pub(crate) type ProcessId = HostId;

/// The clock of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) begins_at: Duration,
    /// How much faster it is than the servers' clocks, in millionths.
    pub(crate) drift: i32,
}

impl Clock {
    pub(crate) fn at(&self, now: Duration) -> Duration {
        let drift = now.as_nanos() as i128 * i128::from(self.drift) / 1_000_000;
        self.begins_at + Duration::from_nanos((now.as_nanos() as i128 + drift) as u64)
    }
}

/// One client machine.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) clock: Clock,
    /// The end of its sleep. `Duration::MAX` if it was killed.
    pub(crate) asleep_until: Option<Duration>,
    /// The end of a block: its sessions and their clients pause, its own tasks do not.
    pub(crate) blocked_until: Option<Duration>,
    /// The server of its next connection. `None` if the client chooses the server.
    pub(crate) reconnects_to: Option<usize>,
    /// The tasks that wait until it runs again.
    pub(crate) wakers: BTreeMap<TaskId, Waker>,
    /// The second of its last request, and how many it has sent in that second.
    pub(super) sent: (u64, u64),
}

impl Process {
    pub(crate) fn is_dead(&self) -> bool {
        self.asleep_until == Some(Duration::MAX)
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep_until.is_some()
    }

    /// True if its sessions and their clients pause.
    pub(crate) fn is_still(&self) -> bool {
        self.asleep_until.is_some() || self.blocked_until.is_some()
    }

    /// Counts a request, and returns how many have been sent in this second.
    pub(crate) fn count_request(&mut self, now: Duration) -> u64 {
        let second = now.as_secs();
        if self.sent.0 != second {
            self.sent = (second, 0);
        }
        self.sent.1 += 1;
        self.sent.1
    }
}
