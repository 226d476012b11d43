//! One connection of a session.

use futures_util::future::{BoxFuture, FutureExt};

use crate::server::ensemble::ServerSession;

/// The connection that was open when this value was made.
pub(crate) struct Connection {
    /// Ready once the connection has broken. `None` after that.
    broken: Option<BoxFuture<'static, ()>>,
}

impl Connection {
    pub(crate) fn of(server: &dyn ServerSession) -> Connection {
        let broken = Some(server.disconnected());
        Connection { broken }
    }

    /// True if the connection has not broken. All answers until now then came over it.
    pub(crate) fn stands(&mut self) -> bool {
        let broken = &mut self.broken;
        if broken
            .as_mut()
            .is_some_and(|broken| broken.now_or_never().is_some())
        {
            *broken = None;
        }
        broken.is_some()
    }
}
