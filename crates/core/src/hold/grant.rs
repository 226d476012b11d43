//! One grant of a recipe by the server: the holder's znode, and how to tell whether it stands.

use std::sync::Arc;

use tokio::sync::watch;

use super::owned::Owned;
use super::standing::Standing;
use super::state::{FencingToken, HoldState};
use crate::ensemble::ServerSession;
use crate::error::Error;
use crate::live::LiveSession;
use crate::loss_watch::{Gone, LossWatch, Watched};
use crate::node::OwnNode;
use crate::rule::Rule;

/// One grant of a recipe by the server. Dropped, it releases in the background.
pub(crate) struct Grant {
    pub(super) owned: Owned,
    /// The rule of the queue, where it was granted in one.
    pub(super) rule: Option<Arc<dyn Rule>>,
    pub(super) token: FencingToken,
    /// How often the session's lease had lapsed at the grant.
    pub(super) lapses: u64,
    fate: watch::Sender<Fate>,
    /// Kept so that the loss_watch can tell whether anybody is left to be told.
    told: watch::Receiver<Fate>,
    /// Its place in the session's list of grants.
    number: u64,
}

/// Tells a grant when its znode has gone.
pub(crate) struct Witness {
    node: OwnNode,
    fate: watch::Sender<Fate>,
}

impl Witness {
    /// Whether nobody is left to be told.
    pub(crate) fn is_done(&self) -> bool {
        self.fate.is_closed()
    }

    /// Sets the watch, and tells what it sees.
    pub(crate) async fn watch(self, live: Arc<LiveSession>, server: Arc<dyn ServerSession>) {
        let loss_watch = LossWatch::unarmed(Watched {
            live,
            server,
            node: self.node.clone(),
        });
        // Others may have come by now, and wait.
        self.node.mark();
        self.tell(loss_watch).await;
    }

    async fn tell(self, loss_watch: LossWatch) {
        let fate = match loss_watch.gone_from_hold().await {
            Gone::Deleted => Fate::Deleted,
            Gone::Written => Fate::Written,
        };
        fate.befall(&self.fate);
    }
}

/// What has become of a grant's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Standing,
    Deleted,
    Written,
    /// The lease has lapsed, and the znode is being deleted for that.
    Lapsed,
}

impl Fate {
    /// What becomes of a grant first counts.
    pub(crate) fn befall(self, grant: &watch::Sender<Fate>) {
        grant.send_if_modified(|now| {
            let standing = *now == Fate::Standing;
            if standing {
                *now = self;
            }
            standing
        });
    }
}

impl Grant {
    /// Grants what a znode stands for, under a lease that had lapsed `lapses` times and
    /// [may grant](LiveSession::may_grant).
    pub(crate) fn new(
        owned: Owned,
        lapses: u64,
        token: FencingToken,
        loss_watch: Option<LossWatch>,
    ) -> Grant {
        let (fate, told) = watch::channel(Fate::Standing);
        let witness = Witness {
            node: owned.node.clone(),
            fate: fate.clone(),
        };
        match loss_watch {
            Some(loss_watch) => owned.live.in_background(witness.tell(loss_watch)),
            // Most holds are over before it is worth a task and a request to watch them.
            None => owned.live.watch_later(witness),
        }
        let number = owned.live.grant(lapses, owned.node.clone(), fate.clone());
        Grant {
            owned,
            number,
            rule: None,
            token,
            lapses,
            fate,
            told,
        }
    }

    /// The same, granted by this rule.
    pub(crate) fn by(mut self, rule: Arc<dyn Rule>) -> Grant {
        self.rule = Some(rule);
        self
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing {
            live: self.owned.live.clone(),
            lapses: self.lapses,
            fate: self.told.clone(),
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.standing().is_held()
    }

    /// Releases, and passes the turn on only once the znode has gone. Dropped half-way, or after
    /// an error, it is seen to in the background.
    pub(super) async fn release(mut self) -> Result<(), Error> {
        let path = self.owned.node.path().to_owned();
        let live = self.owned.live.clone();
        let lost = |reason| Error::Lost {
            path: path.clone(),
            session: live.id(),
            reason,
        };
        let standing = self.standing();
        if let HoldState::Lost(reason) = standing.state() {
            return Err(lost(reason));
        }
        let remove = async {
            let removed = self.owned.node.remove(&live).await;
            removed.map_err(|error| Error::at(path.as_str(), live.id(), error))
        };
        let removed = tokio::select! {
            biased;
            removed = live.during(&path, remove) => removed,
            reason = standing.outlived() => return Err(lost(reason)),
        };
        self.owned.settle();
        removed
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.owned.live.ungrant(self.number);
        if *self.fate.borrow() == Fate::Deleted {
            self.owned.settle();
        } else if !self.is_held() {
            self.owned.node.doubt();
        }
    }
}
