//! Servers that answer too late for a lease: when the session leaves one, and when a contender gives
//! up its place.

use std::mem::take;
use std::time::Duration;

/// A contender gives up its place once its session has left servers this often.
const SERVERS_TO_TRY: u64 = 5;

/// What a session knows of servers that answer too late for a lease which may grant.
#[derive(Debug, Default)]
pub(crate) struct LateServers {
    /// Since when the answers over the connection come too late.
    late_since: Option<Duration>,
    /// True if a contender has waited for a lease since the session left a server for that.
    is_wanted: bool,
    /// How many servers the session has left.
    pub(super) left: u64,
    /// True if a contender has given up its place since the last grant.
    pub(super) has_given_up: bool,
}

/// The wait of a contender whose turn has come, and that has no lease which may grant.
pub(crate) struct LeaseWait {
    began: Duration,
    /// How many servers the session had left by then.
    servers_left: u64,
}

impl LateServers {
    /// Notes an answer that came at this time, and whether the lease may grant after it.
    pub(crate) fn note_answer(&mut self, answered: Duration, may_grant: bool) {
        match may_grant {
            true => (self.late_since, self.is_wanted) = (None, false),
            false => self.late_since = self.late_since.or(Some(answered)),
        }
    }

    /// Notes a new connection. The time between two connections does not count.
    pub(crate) fn connected_anew(&mut self) {
        self.late_since = None;
    }

    /// Notes that the lease may grant to a contender.
    pub(crate) fn note_grant(&mut self) {
        self.has_given_up = false;
    }

    /// Notes that a contender waits for a lease. The error is the time that it has waited: it gives
    /// up its place.
    pub(crate) fn want(
        &mut self,
        now: Duration,
        wait: &mut Option<LeaseWait>,
    ) -> Result<(), Duration> {
        let wait = wait.get_or_insert(LeaseWait {
            began: now,
            servers_left: self.left,
        });
        let tries = match self.has_given_up {
            true => 1,
            false => SERVERS_TO_TRY,
        };
        if self.left < wait.servers_left + tries {
            self.is_wanted = true;
            return Ok(());
        }
        self.has_given_up = true;
        Err(now.saturating_sub(wait.began))
    }

    /// True if the session has to leave the server: a contender waits for a lease, and the answers
    /// over the connection have been too late for one for `timeout`.
    pub(crate) fn leave(&mut self, now: Duration, timeout: Duration) -> bool {
        let is_late = self.late_since.is_some_and(|since| now >= since + timeout);
        let leaves = is_late && take(&mut self.is_wanted);
        if leaves {
            // A client that cannot choose stays.
            self.late_since = None;
            self.left += 1;
        }
        leaves
    }
}
