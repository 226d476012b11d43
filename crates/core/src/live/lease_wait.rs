//! The wait for a lease that may grant, while the servers answer too late for one.

use crate::error::Error;
use crate::live::late_servers::LeaseWait;
use crate::live::live_session::LiveSession;
use crate::retry::Backoff;
use crate::server::ensemble::{Exchange, ServerSession};
use crate::server::error::ServerError;

impl LiveSession {
    /// Sends one `sync` after another until a hold may be granted.
    ///
    /// If it may be at once, nothing is sent. If the servers answer too late for a lease, the error
    /// is [`Error::NoLease`] in the end: `wait` counts for all calls of one contender.
    pub(crate) async fn until_may_grant(
        &self,
        path: &str,
        wait: &mut Option<LeaseWait>,
    ) -> Result<(), Error> {
        let failed = |error| Error::at(path, self.id, error);
        let mut backoff = Backoff::up_to(self.probe_interval);
        while !self.state.borrow().lease.may_grant(self.now()) {
            self.ask_for_lease(path, wait)?;
            let server = self.server().map_err(failed)?;
            match server.sync(path).await {
                Ok(exchange) => self.note_answer(exchange),
                Err(ServerError::OutcomeUnknown(_)) => {}
                Err(error) => return Err(failed(error)),
            }
            drop(server);
            backoff.wait().await;
        }
        Ok(())
    }

    /// Notes that a contender waits for a lease, or that it gives up its place.
    pub(super) fn ask_for_lease(
        &self,
        path: &str,
        wait: &mut Option<LeaseWait>,
    ) -> Result<(), Error> {
        self.change(|state, now| {
            let answer = state.last_answer.map(Exchange::took);
            state.late.want(now, wait).map_err(|waited| Error::NoLease {
                path: path.to_owned(),
                session: self.id,
                waited,
                answer: answer.unwrap_or_default(),
            })
        })
    }

    /// Waits for a lease before a contender enters, if the last one of this session has got none.
    ///
    /// Otherwise each attempt of a task that tries again would bar the others for a while.
    pub(crate) async fn until_may_enter(&self, path: &str) -> Result<(), Error> {
        let has_given_up = self.state.borrow().late.has_given_up;
        match has_given_up {
            true => self.until_may_grant(path, &mut None).await,
            false => Ok(()),
        }
    }

    /// Leaves the server if a contender waits for a lease, and the answers over the connection have
    /// been too late for one for the session timeout.
    ///
    /// Call it after an answer: the time until the next one does not count.
    pub(crate) fn leave_late_server(&self, server: &ServerSession) {
        let leaves = self.change(|state, now| state.late.leave(now, self.timeout));
        if leaves {
            server.raw.leave_server();
        }
    }
}
