//! One ZooKeeper session with all that this process keeps about it.

use std::sync::Arc;

use crate::hold::abandoned::Abandoned;
use crate::hold::alone::LastAlone;
use crate::hold::granted::Granted;
use crate::hold::inherited::Inherited;
use crate::hold::own_znode::OwnZnodes;
use crate::hold::sole_writer::SoleWriter;
use crate::live::live_session::{Contact, LiveSession};
use crate::server::ensemble::ServerSession;
use crate::server::error::SessionEnd;

/// One ZooKeeper session, its znodes and its holds.
pub(crate) struct OpenSession {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) znodes: Arc<OwnZnodes>,
    pub(crate) granted: Arc<Granted>,
    pub(crate) abandoned: Arc<Abandoned>,
    pub(crate) sole_writer: SoleWriter,
    pub(crate) last_alone: Arc<LastAlone>,
    pub(crate) inherited: Inherited,
}

impl OpenSession {
    pub(crate) fn new(live: Arc<LiveSession>) -> Arc<OpenSession> {
        Arc::new(OpenSession {
            znodes: OwnZnodes::new(&live),
            granted: Arc::default(),
            abandoned: Arc::default(),
            sole_writer: SoleWriter::default(),
            last_alone: Arc::default(),
            inherited: Inherited::default(),
            live,
        })
    }

    /// Called after each probe interval.
    pub(crate) fn tick(&self, server: &Arc<dyn ServerSession>) {
        self.granted.tick(&self.live, server);
        self.inherited.tick(&self.live);
    }

    /// Called after each event that the supervisor handles, such as a lapse of the lease.
    pub(crate) fn supervised(&self) {
        self.granted.supervised(self.live.condition());
    }

    /// Ends the session on this side: wakes its waiters, and drops the server side.
    ///
    /// The server may let the next one hold as soon as the server side is dropped. So first each hold
    /// is reported as lost.
    pub(crate) fn end(&self, end: SessionEnd) {
        self.live.set_contact(Contact::Ended(end));
        self.granted.ended(end);
        self.inherited.ended();
        self.live.drop_server();
    }
}
