//! The state of a hold, and its fencing token.

use std::fmt;

use crate::server::error::SessionEnd;

/// A number that grows with each grant, over the whole ensemble.
///
/// The token is the `czxid` of the holder's znode: the id of the transaction that created the
/// znode. If a writer becomes a reader, the token stays that of the writer's znode.
///
/// The number at the end of the znode's name is not a token: it starts again at zero when the
/// directory is created again. Tasks of one process that hand the lock to each other locally share
/// a token, so it does not tell them apart.
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

/// The state of a [`Hold`](crate::Hold).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldState {
    /// The hold is valid, and the server answers.
    Held,
    /// The hold is still valid, but the server does not answer.
    ///
    /// If no answer comes, the hold is lost when
    /// [`HoldView::remaining`](crate::HoldView::remaining) is zero.
    Suspended,
    /// The hold is lost, and will never be valid again.
    Lost(LossReason),
}

impl fmt::Display for HoldState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HoldState::Held => formatter.write_str("held"),
            HoldState::Suspended => formatter.write_str("held, but the server does not answer"),
            HoldState::Lost(reason) => fmt::Display::fmt(reason, formatter),
        }
    }
}

/// Why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The session of the hold is over.
    #[error("the hold is lost: its session is {0}")]
    Session(SessionEnd),
    /// The server has not answered for so long that it may have expired the session.
    #[error("the hold is lost: no answer came in time to show that its session is alive")]
    LeaseElapsed,
    /// Another client has deleted the holder's znode.
    #[error("the hold is lost: another client deleted its znode")]
    Deleted,
    /// Another client has written to the holder's znode.
    ///
    /// The access control list of the znode does not stop ZooKeeper's super user. The waiters
    /// treat such a write as the release.
    #[error("the hold is lost: another client wrote to its znode")]
    Written,
    /// The hold was released. Only a [`HoldView`](crate::HoldView) can report this.
    #[error("the hold is over: it was released")]
    Released,
}
