//! One grant of a recipe by the server: the holder's znode and its state.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::error::Error;
use crate::hold::granted::{Granted, UnsetLossWatch};
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::Owned;
use crate::hold::standing::{Fate, FateTeller, Standing};
use crate::hold_state::FencingToken;
use crate::rule::Rule;

/// One grant of a recipe by the server.
///
/// If it is dropped, it is released in the background.
pub(crate) struct Grant {
    pub(crate) owned: Owned,
    /// The rule of the queue; `None` if the recipe has no queue.
    pub(crate) rule: Option<Arc<dyn Rule>>,
    pub(crate) token: FencingToken,
    /// The number of lapses of the session's lease at the grant.
    pub(crate) lapses: u64,
    pub(crate) fate: FateTeller,
    /// While this or a clone exists, the loss watch has a receiver to tell.
    told: watch::Receiver<Fate>,
    /// The session's list of grants. `number` is this grant's number in the list.
    pub(crate) granted: Arc<Granted>,
    number: u64,
}

impl Grant {
    /// Grants the recipe to the owner of a znode.
    ///
    /// The lease has lapsed `lapses` times, and [may grant](LiveSession::may_grant).
    pub(crate) fn new(
        owned: Owned,
        granted: Arc<Granted>,
        lapses: u64,
        token: FencingToken,
        loss_watch: Option<LossWatch>,
    ) -> Grant {
        let (fate, told) = FateTeller::new();
        owned.znode.set_held(true);
        let unset = UnsetLossWatch::new(owned.znode.clone(), fate.clone());
        match loss_watch {
            Some(loss_watch) => owned.znode.live().in_background(unset.tell(loss_watch)),
            None => granted.watch_later(unset),
        }
        let number = granted.add(lapses, owned.znode.clone(), fate.clone());
        Grant {
            owned,
            granted,
            number,
            rule: None,
            token,
            lapses,
            fate,
            told,
        }
    }

    /// Notes the rule that granted.
    pub(crate) fn by(mut self, rule: Arc<dyn Rule>) -> Grant {
        self.rule = Some(rule);
        self
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing {
            live: self.owned.znode.live().clone(),
            lapses: self.lapses,
            fate: self.told.clone(),
            until: None,
        }
    }

    /// When a time limit that begins now passes, by the ensemble's clock.
    pub(crate) fn until(&self, at_most: Option<Duration>) -> Option<Duration> {
        let now = self.owned.znode.live().now();
        at_most.and_then(|at_most| now.checked_add(at_most))
    }

    pub(crate) fn is_held(&self) -> bool {
        self.standing().is_held()
    }

    /// Deletes the znode, and then passes the turn on.
    ///
    /// If the future is dropped, or after an error, the znode is deleted in the background.
    pub(crate) async fn release(mut self) -> Result<(), Error> {
        let path = self.owned.znode.path().to_owned();
        let live = self.owned.znode.live().clone();
        let lost = |reason| Error::Lost {
            path: path.clone(),
            session: live.id(),
            reason,
        };
        let standing = self.standing();
        let removed = {
            let remove = pin!(async {
                let removed = self.owned.znode.remove().await;
                removed.map_err(|error| Error::at(path.as_str(), live.id(), error))
            });
            tokio::select! {
                biased;
                removed = live.during(&path, remove) => removed,
                reason = standing.outlived() => return Err(lost(reason)),
            }
        };
        self.owned.settle();
        removed
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.granted.remove(self.number);
        if self.fate.fate() == Fate::Deleted {
            self.owned.settle();
        } else if !self.is_held() {
            self.owned.znode.set_held(false);
        }
    }
}
