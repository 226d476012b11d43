//! A session that the servers refuse, although they would open a new one.
//!
//! A server that has lost its data, or has an older backup, closes the connection of a session that
//! has seen more than the server has. So does a server without a quorum, which has the session again
//! later. A new session at the same host distinguishes the two: only a server with a quorum opens
//! one. It is closed at once, and the host is asked for the old session once more, because the quorum
//! may have returned in between.

use std::time::Duration;

use zookeeper_recipes_protocol::{ConnectResponse, RequestBody};

use crate::error::DisconnectReason;
use crate::session::machine::{Machine, Phase, Refusal};

impl<R, W> Machine<R, W> {
    /// The session that the host of this try is asked for. `None` asks for a new one.
    pub(crate) fn asked_session(&self) -> Option<&ConnectResponse> {
        let session = self.session.as_ref();
        session.filter(|_| !matches!(self.refusal, Refusal::Suspected))
    }

    /// A host that has refused the session has answered the request for a new one.
    pub(crate) fn tried(
        &mut self,
        now: Duration,
        response: &ConnectResponse,
    ) -> Result<(), DisconnectReason> {
        if !response.is_granted() {
            return Err(DisconnectReason::NotGranted);
        }
        let opened_in = self.greeting_time(now).unwrap_or_default();
        self.give_up(now, DisconnectReason::Left);
        self.refusal = Refusal::Shown { opened_in };
        // The driver sends this before it drops the connection. Nobody knows the new session, so it
        // must not stay open at the server.
        self.send_own(RequestBody::CloseSession);
        Ok(())
    }

    /// Notes that a try has failed. True if the session is over.
    ///
    /// Nothing is left to protect once T has passed without a server. After another T, a refusal by
    /// a server that opens sessions is the end.
    pub(crate) fn note_refusal(&mut self, now: Duration, cause: &DisconnectReason) -> bool {
        // A host that has confirmed the session does not refuse it.
        let greeting = self.greeting_time(now);
        let greeting = greeting.filter(|_| self.closing_until.is_none());
        let timeouts = greeting.and_then(|time| refuses_after(cause, self.is_late(time)));
        let is_refused = self
            .served_at
            .zip(timeouts)
            .is_some_and(|(at, timeouts)| now >= at + self.timing.session * timeouts);
        self.refusal = match (self.refusal, is_refused) {
            (Refusal::Shown { .. }, true) => return true,
            (Refusal::Unknown, true) => Refusal::Suspected,
            _ => Refusal::Unknown,
        };
        false
    }

    /// How long the present handshake has lasted, from the start of the connect.
    fn greeting_time(&self, now: Duration) -> Option<Duration> {
        match self.phase {
            Phase::Greeting { since } => Some(now.saturating_sub(since)),
            _ => None,
        }
    }

    /// True if a handshake that ends after this time may have waited for a leader.
    ///
    /// A server refuses a session at once, and needs its leader to confirm or open one. So a refusal
    /// takes no longer than the opening of the new session, except for the jitter of the network. A
    /// server that loses its leader meanwhile closes all its connections, and may know the session.
    fn is_late(&self, greeting: Duration) -> bool {
        let jitter = self.timing.session / 20;
        match self.refusal {
            Refusal::Shown { opened_in } => greeting > opened_in + jitter,
            Refusal::Unknown | Refusal::Suspected => false,
        }
    }
}

/// How many T without a server have passed when a host refuses the session by this break of the
/// handshake. `None` if the host may have taken long, has no quorum, or was left.
fn refuses_after(cause: &DisconnectReason, is_late: bool) -> Option<u32> {
    match cause {
        DisconnectReason::NoSession(_)
        | DisconnectReason::Silent(_)
        | DisconnectReason::ReadOnly
        | DisconnectReason::Left => None,
        // A server that refuses a session has read all, and closes the connection in order.
        DisconnectReason::Closed if !is_late => Some(2),
        // The network resets connections, too, and a server closes them late if it has lost its
        // leader. But a proxy may turn the end of the connection into a reset or delay it, and a
        // session that never ends would keep its callers waiting for ever.
        _ => Some(10),
    }
}
