//! Requests at which servers close the connection, because they do not know them.

use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Mutex, MutexGuard, lock};

/// After this many connections in a row that broke at the request, it is not sent for a while.
const MOST_BREAKS: u32 = 3;
/// The first pause. Each further break at the request doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(600);
const MOST_DOUBLINGS: u32 = 10;

/// A kind of request that is not worth a try at the servers of one ensemble, for now.
///
/// Some servers close the connection at a request that they do not know, and answer the reconnect
/// with a new session. So share this between the sessions of an ensemble, one after the other: a
/// clone shares what is known.
///
/// Connections break for other reasons, too. So after three connections in a row that broke at it,
/// the request is tried again after ten minutes, and then after pauses that double.
#[derive(Clone, Debug, Default)]
pub struct Avoided(Arc<Mutex<Breaks>>);

#[derive(Debug, Default)]
struct Breaks {
    number: u32,
    /// When the last break was noticed.
    last: Duration,
}

impl Avoided {
    /// A kind of request that is worth a try.
    pub fn new() -> Avoided {
        Avoided::default()
    }

    /// True if such a request should not be sent now.
    pub fn is_avoided(&self, now: Duration) -> bool {
        let breaks = self.lock();
        let doublings = breaks
            .number
            .saturating_sub(MOST_BREAKS)
            .min(MOST_DOUBLINGS);
        let until = breaks.last + FIRST_PAUSE * 2_u32.pow(doublings);
        breaks.number >= MOST_BREAKS && now < until
    }

    /// A connection broke before it had answered such a request, which was sent at `sent`.
    ///
    /// One break of a connection counts once for all requests that it met.
    pub fn closed(&self, sent: Duration, now: Duration) {
        let mut breaks = self.lock();
        if breaks.number == 0 || sent > breaks.last {
            breaks.number = breaks.number.saturating_add(1);
            breaks.last = now;
        }
    }

    /// A server has answered such a request.
    pub fn answered(&self) {
        *self.lock() = Breaks::default();
    }

    fn lock(&self) -> MutexGuard<'_, Breaks> {
        lock(&self.0)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/avoided.rs"]
mod tests;
