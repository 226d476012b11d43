//! Leases that are too short again and again over one connection.
//!
//! The server answers so late that no lease can be kept there, so the session leaves it.

use std::time::Duration;

/// The time after which a session leaves a server doubles at each server, at most this often.
const MOST_DOUBLINGS: u32 = 6;

/// When leases of a session were too short, and how often the session has left a server for that.
#[derive(Debug)]
pub(crate) struct ShortLeases {
    timeout: Duration,
    series: Option<Series>,
    /// How many servers in a row the session has left.
    servers_left: u32,
    /// True if a hold was granted since the lease lapsed last.
    has_granted: bool,
}

/// Short leases over one connection, at most the session timeout apart.
#[derive(Clone, Copy, Debug)]
struct Series {
    connection: Option<u64>,
    first: Duration,
    last: Duration,
}

impl ShortLeases {
    pub(crate) fn new(timeout: Duration) -> ShortLeases {
        ShortLeases {
            timeout,
            series: None,
            servers_left: 0,
            has_granted: false,
        }
    }

    /// Notes a grant.
    ///
    /// It ends no series: the lease may lapse before the answer to the release has come.
    pub(crate) fn granted(&mut self) {
        self.has_granted = true;
    }

    /// Notes a lapse. The lease was too short if a hold was granted since the lapse before.
    pub(crate) fn lapsed(&mut self, now: Duration, connection: Option<u64>) {
        if std::mem::take(&mut self.has_granted) {
            self.note(now, connection);
        }
    }

    /// Notes that the lease is too short for a contender or a holder.
    pub(crate) fn note(&mut self, now: Duration, connection: Option<u64>) {
        let before = self.series.filter(|it| now <= it.last + self.timeout);
        if before.is_none() {
            self.servers_left = 0;
        }
        let before = before.filter(|it| it.connection == connection);
        self.series = Some(Series {
            connection,
            first: before.map_or(now, |it| it.first),
            last: now,
        });
    }

    /// True if the session has to leave the server now: the series lasts for the session timeout,
    /// and for twice as long at each further server.
    pub(crate) fn leaves(&mut self) -> bool {
        let lasts = self.timeout * 2_u32.pow(self.servers_left);
        let Some(series) = &mut self.series else {
            return false;
        };
        let leaves = series.last - series.first >= lasts;
        if leaves {
            series.first = series.last;
            self.servers_left = (self.servers_left + 1).min(MOST_DOUBLINGS);
        }
        leaves
    }
}

#[cfg(test)]
#[path = "../../tests/unit/short_leases.rs"]
mod tests;
