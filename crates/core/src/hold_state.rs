//! How a hold stands, and the number that tells it from others.

use std::fmt;

use crate::server::error::SessionEnd;

/// A number that grows with every grant over the whole ensemble.
///
/// It is the `czxid` of the holder's znode: the transaction that created it, or that created the
/// one before it where that was [replaced](crate::Hold::replace). (The number at the
/// end of the znode's name is no token: it begins anew with the directory.) Holders that hand the
/// lock to each other within a process share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(i64);

impl FencingToken {
    /// The number itself.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl From<i64> for FencingToken {
    fn from(czxid: i64) -> FencingToken {
        FencingToken(czxid)
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> i64 {
        token.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// How it stands with a [`Hold`](crate::Hold).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldState {
    /// It is held.
    Held,
    /// It is held still, but no answer comes from the server; unless one does, it will be lost
    /// when [`HoldView::remaining`](crate::HoldView::remaining) is zero.
    Suspended,
    /// It is held no more, and never will be again.
    Lost(LossReason),
}

impl fmt::Display for HoldState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HoldState::Held => formatter.write_str("held"),
            HoldState::Suspended => formatter.write_str("held, and no answer comes"),
            HoldState::Lost(reason) => fmt::Display::fmt(reason, formatter),
        }
    }
}

/// How a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The session it was held in is over.
    #[error("the hold is lost: its session is {0}")]
    Session(SessionEnd),
    /// Nothing was heard from the server for so long that it may have expired the session.
    #[error("the hold is lost: no answer came in time to be sure that the session lives")]
    LeaseElapsed,
    /// Somebody else has deleted the holder's znode.
    #[error("the hold is lost: its znode was deleted by somebody else")]
    Deleted,
    /// Somebody else has written to the holder's znode, in spite of its access control list (as
    /// ZooKeeper's super user can); those who wait take that for its release.
    #[error("the hold is lost: its znode was written to by somebody else")]
    Written,
    /// It was released. Only a [`HoldView`](crate::HoldView) outlives that.
    #[error("the hold is over: it was released")]
    Released,
}
