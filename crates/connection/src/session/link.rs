//! The states of a session's connection.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::End;

/// The current connection.
#[derive(Debug)]
pub(crate) enum Link {
    /// There is none. The next host is tried at `until`.
    Down { until: Duration },
    /// A connection to `host` is being opened, since `since`.
    Opening { host: usize, since: Duration },
    /// The server was asked for the session.
    Greeting { host: usize, since: Duration },
    /// The server has confirmed the session. The replies to these are outstanding.
    Restoring {
        host: usize,
        schemes: VecDeque<String>,
        watches: usize,
    },
    /// The server takes requests.
    Up,
    /// The session is over.
    Ended(End),
}
