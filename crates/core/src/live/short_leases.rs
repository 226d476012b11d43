//! Leases that are too short, because the servers answer late: when the session leaves its server,
//! and when a contender gives its place up. [`docs::lease`](crate::docs::lease) has the reasons.

use std::time::Duration;

use crate::server::ensemble::Exchange;

/// A contender gives its place up after this many session timeouts without a lease: the first one
/// since the session's last grant, and each further one.
const PATIENCE: [u32; 2] = [5, 1];

/// When leases of a session were too short over its connection.
#[derive(Debug)]
pub(crate) struct ShortLeases {
    timeout: Duration,
    connection: Option<u64>,
    /// When a lease was too short last.
    last: Duration,
    /// Since when leases are too short over the connection, again and again: at most the session
    /// timeout after the time before.
    since: Duration,
    /// True if a hold was granted since the lease lapsed last.
    has_granted: bool,
    /// How many servers the session has left.
    left: u64,
    /// True if a contender has given its place up since the last grant.
    pub(crate) has_given_up: bool,
}

impl ShortLeases {
    pub(crate) fn new(timeout: Duration) -> ShortLeases {
        ShortLeases {
            timeout,
            connection: None,
            last: Duration::ZERO,
            since: Duration::ZERO,
            has_granted: false,
            left: 0,
            has_given_up: false,
        }
    }

    /// Notes a grant. The lease may lapse before the answer to the release has come.
    pub(crate) fn granted(&mut self) {
        self.has_granted = true;
        self.has_given_up = false;
    }

    /// Notes a lapse. The lease was too short if a hold was granted since the lapse before.
    pub(crate) fn lapsed(&mut self, now: Duration, connection: Option<u64>) {
        if std::mem::take(&mut self.has_granted) {
            self.note(now, connection);
        }
    }

    /// Notes that the lease is too short for a contender or a holder.
    pub(crate) fn note(&mut self, now: Duration, connection: Option<u64>) {
        if self.connection != connection || now > self.last + self.timeout {
            self.since = now;
        }
        self.connection = connection;
        self.last = now;
    }

    /// True if the session has to leave the server now, because the leases have been too short for
    /// the session timeout.
    pub(crate) fn leaves(&mut self) -> bool {
        let leaves = self.last - self.since >= self.timeout;
        if leaves {
            self.since = self.last;
            self.left += 1;
        }
        leaves
    }
}

/// How long a contender whose turn has come has waited for a lease, while the servers answered.
#[derive(Debug, Default)]
pub(crate) struct LeaseWait {
    pub(crate) waited: Duration,
    /// When the last answer came.
    answered: Duration,
    /// How long it took.
    pub(crate) answer: Duration,
    /// How many servers the session had left by then.
    left: u64,
}

impl LeaseWait {
    /// Notes an answer. Its request was sent at most this `pause` after the answer before, unless no
    /// server answered in between.
    ///
    /// The time without an answer counts only if the session has left a server. Each step counts as
    /// at most the session timeout: a longer one is a pause of the process, or a slow reconnect.
    pub(crate) fn note(&mut self, exchange: Exchange, short: &ShortLeases, pause: Duration) {
        let since = match self.left == short.left || self.answered.is_zero() {
            true => exchange.sent.saturating_sub(pause).max(self.answered),
            false => self.answered,
        };
        self.waited += exchange.answered.saturating_sub(since).min(short.timeout);
        self.answered = exchange.answered;
        self.answer = exchange.answered.saturating_sub(exchange.sent);
        self.left = short.left;
    }

    /// True if the contender has to give its place up.
    pub(crate) fn is_over(&self, short: &ShortLeases) -> bool {
        self.waited >= short.timeout * PATIENCE[usize::from(short.has_given_up)]
    }
}

#[cfg(test)]
#[path = "../../tests/unit/short_leases.rs"]
mod tests;
