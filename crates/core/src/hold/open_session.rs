//! One ZooKeeper session with all that this process keeps about it.

use std::sync::Arc;

use crate::hold::granted::Granted;
use crate::hold::handoff::Handoff;
use crate::hold::own_znode::SessionZnodes;
use crate::live::live_session::{LiveSession, Status};
use crate::server::error::SessionEnd;

/// One ZooKeeper session, its znodes and its holds.
pub(crate) struct OpenSession {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) znodes: Arc<SessionZnodes>,
    pub(crate) granted: Granted,
    pub(crate) handoff: Handoff,
}

impl OpenSession {
    /// A session at servers with this `jute.maxbuffer`.
    pub(crate) fn new(live: Arc<LiveSession>, jute_maxbuffer: usize) -> Arc<OpenSession> {
        Arc::new(OpenSession {
            znodes: SessionZnodes::new(&live, jute_maxbuffer),
            granted: Granted::default(),
            handoff: Handoff::default(),
            live,
        })
    }

    /// Ends the session on this side: wakes its waiters, and drops the `ServerSession`.
    ///
    /// The server may let the next contender hold as soon as the `ServerSession` is dropped. So
    /// each hold is reported as lost first. Many znodes are deleted then. If the server does not
    /// know of the end yet, the znodes stay registered.
    pub(crate) fn end(&self, end: SessionEnd) {
        if end.is_closed_here() {
            self.znodes.freeze(end);
        }
        self.live.set_status(Status::Ended(end));
        self.granted.report_end(end);
        if let Ok(server) = self.live.server() {
            if end.is_closed_here() {
                self.znodes.delete_many(&*server);
            }
        }
        self.live.drop_server_session();
    }
}
