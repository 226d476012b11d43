//! The connection over which something was last asked.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::server::ensemble::ServerSession;

/// No connection has this number.
const NONE: u64 = u64::MAX;

/// The number of the connection over which something was last asked, or a later request.
///
/// An answer that is read late says nothing of the servers that a later connection has reached: they
/// may have lost data.
pub(crate) struct LastConnection(AtomicU64);

impl Default for LastConnection {
    fn default() -> LastConnection {
        LastConnection(AtomicU64::new(NONE))
    }
}

impl LastConnection {
    /// Call it before the request.
    pub(crate) fn note(&self, server: &ServerSession) {
        let number = server.connection().unwrap_or(NONE);
        self.0.store(number, Ordering::Relaxed);
    }

    /// The connection. `None` if there was none.
    pub(crate) fn number(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|number| *number != NONE)
    }

    /// True if the session has not reconnected since the request.
    ///
    /// Without a connection it has not: the lease says how long the answer counts.
    pub(crate) fn is_last(&self, server: &ServerSession) -> bool {
        let number = self.0.load(Ordering::Relaxed);
        server.connection().is_none_or(|now| now == number)
    }

    /// True if the session is connected, and by the connection of the request.
    pub(crate) fn is_current(&self, server: &ServerSession) -> bool {
        server.connection().is_some() && self.is_last(server)
    }
}
