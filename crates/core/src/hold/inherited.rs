//! The holds that a session has inherited from another process, until recipes take them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::contender::Contender;
use crate::events::session as events;
use crate::hold::detached_session::LeftHold;
use crate::hold::own_znode::{OwnNode, until_gone};
use crate::hold_state::FencingToken;
use crate::path::NodePath;
use crate::server::ensemble::ServerSession;
use crate::server::error::SessionEnd;
use crate::session::live::{Attachment, LiveSession};
use crate::sync::lock;

/// The inherited holds of a session that no recipe has taken.
#[derive(Default)]
pub(crate) struct Inherited(Mutex<Heritage>);

#[derive(Default)]
struct Heritage {
    /// When the znodes are deleted that no recipe has taken.
    until: Duration,
    holds: Vec<InheritedHold>,
}

/// A hold of an earlier process.
pub(crate) struct InheritedHold {
    pub(crate) node: OwnNode,
    pub(crate) token: FencingToken,
}

impl InheritedHold {
    /// True if the znode is a contender of this label in this directory.
    fn is(&self, directory: &NodePath, label: &str) -> bool {
        let name = self.node.path().strip_prefix(directory.as_str());
        let name = name.and_then(|name| name.strip_prefix('/'));
        name.is_some_and(|name| Contender::parse(name, |found| found == label).is_some())
    }
}

impl Inherited {
    /// Lists the holds that this session inherits.
    pub(crate) fn give(live: &Arc<LiveSession>, holds: &[LeftHold]) {
        let inherited = live.attached::<Inherited>();
        let hold = |hold: &LeftHold| InheritedHold {
            node: OwnNode::unique(live, &hold.path),
            token: hold.token,
        };
        *lock(&inherited.0) = Heritage {
            until: live.now() + live.timeout(),
            holds: holds.iter().map(hold).collect(),
        };
    }

    /// Takes a hold of a contender of this label in this directory.
    pub(crate) fn take(&self, directory: &NodePath, label: &str) -> Option<InheritedHold> {
        let mut heritage = lock(&self.0);
        let mut holds = heritage.holds.iter();
        let place = holds.position(|hold| hold.is(directory, label))?;
        Some(heritage.holds.remove(place))
    }

    /// True if there is a hold to [take](Self::take).
    pub(crate) fn has(&self, directory: &NodePath, label: &str) -> bool {
        let heritage = lock(&self.0);
        heritage.holds.iter().any(|hold| hold.is(directory, label))
    }
}

impl Attachment for Inherited {
    fn attach(_live: &LiveSession) -> Inherited {
        Inherited::default()
    }

    /// Deletes the znodes that no recipe has taken for a session timeout.
    ///
    /// The waiters behind them wait as long as behind the znode of a process that was killed.
    fn tick(&self, live: &Arc<LiveSession>, _server: &Arc<dyn ServerSession>) {
        let mut heritage = lock(&self.0);
        if live.now() < heritage.until {
            return;
        }
        for InheritedHold { node, .. } in std::mem::take(&mut heritage.holds) {
            events::not_taken(live.id(), node.path());
            let own_live = live.clone();
            live.in_background(async move {
                until_gone(&own_live, (), node.path(), || node.remove(&own_live)).await;
            });
        }
    }

    fn ended(&self, _end: SessionEnd) {
        lock(&self.0).holds.clear();
    }
}
