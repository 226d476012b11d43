//! One grant of a recipe by the server: the holder's znode, and how to tell whether it stands.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::Error;
use crate::hold::fate::Fate;
use crate::hold::granted::{Granted, UnsetLossWatch};
use crate::hold::loss_watch::LossWatch;
use crate::hold::owned::Owned;
use crate::hold::standing::Standing;
use crate::hold_state::{FencingToken, HoldState};
use crate::rule::Rule;

/// One grant of a recipe by the server. Dropped, it releases in the background.
pub(crate) struct Grant {
    pub(crate) owned: Owned,
    /// The rule of the queue, where it was granted in one.
    pub(crate) rule: Option<Arc<dyn Rule>>,
    pub(crate) token: FencingToken,
    /// How often the session's lease had lapsed at the grant.
    pub(crate) lapses: u64,
    fate: watch::Sender<Fate>,
    /// Kept so that the loss_watch can tell whether anybody is left to be told.
    told: watch::Receiver<Fate>,
    /// The session's list of grants, and the place in it.
    granted: Arc<Granted>,
    number: u64,
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
        let granted = owned.live.attached::<Granted>();
        let unset = UnsetLossWatch::new(owned.node.clone(), fate.clone());
        match loss_watch {
            Some(loss_watch) => owned.live.in_background(unset.tell(loss_watch)),
            None => granted.watch_later(unset),
        }
        let number = granted.add(lapses, owned.node.clone(), fate.clone());
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
    pub(crate) async fn release(mut self) -> Result<(), Error> {
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
        self.granted.remove(self.number);
        if *self.fate.borrow() == Fate::Deleted {
            self.owned.settle();
        } else if !self.is_held() {
            self.owned.node.doubt();
        }
    }
}
