//! The znode of a member of this process: one attempt to create it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use zookeeper_recipes_core::{
    Backoff, Error, Hold, NamedZnode, NodePath, Refusal, ServerError, Session, Stat,
};

use crate::GroupOptions;
use crate::names::{Name, Turn};

/// What a member is created with.
#[derive(Clone, Debug)]
pub(crate) struct OwnMember {
    pub(crate) session: Session,
    pub(crate) path: NodePath,
    pub(crate) data: Arc<[u8]>,
    pub(crate) options: GroupOptions,
    pub(crate) turn: Turn,
}

/// What an attempt does while another member has the name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfTaken {
    Wait,
    Refuse,
}

/// An attempt to create the znode. Its owner keeps it until the znode is certainly gone.
struct Attempt {
    _name: Arc<Name>,
    /// The transaction that created the znode of the attempt before.
    last: i64,
    /// The transaction that created the znode. 0 while that is not known.
    czxid: AtomicI64,
    /// The turn, while `czxid` is not known. No other attempt of the process may begin then.
    turn: Mutex<Option<Turn>>,
}

impl Attempt {
    fn new(turn: &Turn) -> Attempt {
        Attempt {
            _name: turn.name().clone(),
            last: turn.last(),
            czxid: AtomicI64::new(0),
            turn: Mutex::new(Some(turn.clone())),
        }
    }

    fn created(&self, czxid: i64) {
        self.czxid.store(czxid, Ordering::Relaxed);
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        drop(turn.take());
    }

    /// True if the attempt has created this znode of its session.
    fn has_created(&self, stat: &Stat) -> bool {
        match self.czxid.load(Ordering::Relaxed) {
            0 => stat.czxid > self.last,
            czxid => stat.czxid == czxid,
        }
    }
}

impl OwnMember {
    /// Creates the znode, and holds by it.
    pub(crate) async fn join(&self, if_taken: IfTaken) -> Result<Hold, Error> {
        let mut lapsed = Backoff::default();
        loop {
            let attempt = Arc::new(Attempt::new(&self.turn));
            let own = attempt.clone();
            let is_own = move |_: &[u8], stat: &Stat| own.has_created(stat);
            let mut znode =
                NamedZnode::begin(&self.session, &self.path, &self.options, is_own).await?;
            let stat = match if_taken {
                IfTaken::Wait => znode.create_or_wait(&self.data).await?,
                IfTaken::Refuse => {
                    let created = znode.create(&self.data).await?;
                    let taken = ServerError::Refused(Refusal::NodeExists);
                    created.ok_or_else(|| znode.failed(taken))?
                }
            };
            attempt.created(stat.czxid);
            self.turn.created(stat.czxid);
            match znode.hold("group", &stat).await? {
                Some(hold) => return Ok(hold),
                // The lease has lapsed in this moment, and the znode is deleted.
                None => lapsed.wait().await,
            }
        }
    }
}
