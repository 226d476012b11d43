//! One ZooKeeper session with all that this process keeps about it.

use std::sync::Arc;
use std::time::Duration;

use crate::contender::Contender;
use crate::events::session as events;
use crate::hold::grant::Granted;
use crate::hold::own_znode::{SessionZnodes, Znode};
use crate::hold::sole_writer::SoleWriter;
use crate::hold_state::FencingToken;
use crate::live::live_session::{LiveSession, Status};
use crate::path::NodePath;
use crate::server::error::SessionEnd;
use crate::sync::{Mutex, lock};

/// One ZooKeeper session, its znodes and its holds.
pub(crate) struct OpenSession {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) znodes: Arc<SessionZnodes>,
    pub(crate) granted: Granted,
    pub(crate) sole_writer: SoleWriter,
    pub(crate) inherited: Inherited,
}

impl OpenSession {
    pub(crate) fn new(live: Arc<LiveSession>) -> Arc<OpenSession> {
        Arc::new(OpenSession {
            znodes: SessionZnodes::new(&live),
            granted: Granted::default(),
            sole_writer: SoleWriter::default(),
            inherited: Inherited::default(),
            live,
        })
    }

    /// Ends the session on this side: wakes its waiters, and drops the `ServerSession`.
    ///
    /// The server may let the next contender hold as soon as the `ServerSession` is dropped. So
    /// first each hold is reported as lost. If the server does not know of the end yet, the znodes
    /// stay registered.
    pub(crate) fn end(&self, end: SessionEnd) {
        if end.is_closed_here() {
            self.znodes.freeze(end);
        }
        self.live.set_status(Status::Ended(end));
        self.granted.report_end(end);
        self.inherited.clear();
        self.live.drop_server_session();
    }
}

/// The inherited holds of a session that no recipe has taken.
#[derive(Default)]
pub(crate) struct Inherited(Mutex<Untaken>);

#[derive(Default)]
struct Untaken {
    /// When the znodes are deleted that no recipe has taken.
    deadline: Duration,
    holds: Vec<InheritedHold>,
}

/// A hold of an earlier process.
pub(crate) struct InheritedHold {
    pub(crate) znode: Znode,
    pub(crate) token: FencingToken,
}

impl InheritedHold {
    /// True if the znode is a contender of this label in this directory.
    fn is(&self, directory: &NodePath, label: &str) -> bool {
        let name = directory.child_name(self.znode.path());
        name.is_some_and(|name| Contender::parse(name, |found| found == label).is_some())
    }
}

impl Inherited {
    /// Lists the holds that a session inherits: the paths of their znodes, and their tokens.
    pub(crate) fn give<'a>(
        &self,
        znodes: &Arc<SessionZnodes>,
        holds: impl Iterator<Item = (&'a str, FencingToken)>,
    ) {
        let hold = |(path, token)| InheritedHold {
            znode: znodes.inherited(path),
            token,
        };
        *lock(&self.0) = Untaken {
            deadline: znodes.live.now() + znodes.live.timeout,
            holds: holds.map(hold).collect(),
        };
    }

    /// Takes a hold of a contender of this label in this directory.
    pub(crate) fn take(&self, directory: &NodePath, label: &str) -> Option<InheritedHold> {
        let mut untaken = lock(&self.0);
        let mut holds = untaken.holds.iter();
        let place = holds.position(|hold| hold.is(directory, label))?;
        Some(untaken.holds.remove(place))
    }

    /// Deletes the znodes that no recipe has taken for a session timeout.
    ///
    /// Until then the waiters wait, as they do behind the znode of a killed process.
    pub(crate) fn delete_overdue(&self, live: &LiveSession) {
        let holds = {
            let mut untaken = lock(&self.0);
            if live.now() < untaken.deadline {
                return;
            }
            std::mem::take(&mut untaken.holds)
        };
        for InheritedHold { znode, .. } in holds {
            events::not_taken(live.id, znode.path());
            znode.delete_in_background(());
        }
    }

    /// Forgets the holds, because the session has ended.
    pub(crate) fn clear(&self) {
        lock(&self.0).holds.clear();
    }
}
