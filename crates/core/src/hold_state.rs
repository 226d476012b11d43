//! The state of a hold, its fencing token, and its loss.

use std::fmt;

use crate::server::error::SessionEnd;

/// A number that grows with each grant, over the whole ensemble.
///
/// It is the `czxid` of the holder's znode: the id of the transaction that created the znode. If a
/// writer becomes a reader, the token stays that of the writer's znode. A store keeps the token in
/// one column of a signed integer of 64 bits. Tokens are positive.
///
/// The number at the end of the znode's name is not a token: it starts again at zero when the
/// directory is created again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(i64);

impl FencingToken {
    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// The token of this number, for example as read from a store.
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

/// Writes the number.
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
    /// The owner has released or dropped the hold. Only a [`HoldView`](crate::HoldView) shows this.
    Released,
    /// The hold is lost, and will never be valid again.
    Lost(LossReason),
}

impl HoldState {
    /// How the hold ended, or `None` if it is valid.
    pub fn ended(self) -> Option<Ended> {
        match self {
            HoldState::Held | HoldState::Suspended => None,
            HoldState::Released => Some(Ended::Released),
            HoldState::Lost(reason) => Some(Ended::Lost(reason)),
        }
    }
}

impl From<Ended> for HoldState {
    fn from(ended: Ended) -> HoldState {
        match ended {
            Ended::Released => HoldState::Released,
            Ended::Lost(reason) => HoldState::Lost(reason),
        }
    }
}

impl fmt::Display for HoldState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HoldState::Held => formatter.write_str("held"),
            HoldState::Suspended => formatter.write_str("held, but the server does not answer"),
            HoldState::Released => fmt::Display::fmt(&Ended::Released, formatter),
            HoldState::Lost(reason) => fmt::Display::fmt(reason, formatter),
        }
    }
}

/// How a hold ended, for the tasks that have a [`HoldView`](crate::HoldView) of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Ended {
    /// The owner has released or dropped the hold.
    #[error("the hold is over: it was released")]
    Released,
    /// The hold was lost before its owner released it.
    #[error(transparent)]
    Lost(#[from] LossReason),
}

/// Why a hold was lost.
///
/// Each report of one loss names the same reason: the first that was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The session of the hold is over.
    #[error("the hold is lost: its session is {0}")]
    Session(SessionEnd),
    /// The server has not answered for so long that it may have expired the session.
    #[error("the hold is lost: no answer came in time to show that its session is alive")]
    LeaseElapsed,
    /// The holder's znode was deleted: by another client, or by the servers with the session.
    ///
    /// The servers delete the znodes of a session that ends, and report this like any deletion. If
    /// the process hears of the end of the session first, the reason is
    /// [`Session`](LossReason::Session).
    #[error("the hold is lost: its znode was deleted")]
    Deleted,
    /// Another client has written to the holder's znode. The waiters treat this as the release.
    ///
    /// The access control list of the znode does not stop ZooKeeper's super user.
    #[error("the hold is lost: another client wrote to its znode")]
    Written,
    /// The hold has lasted for its [`max_hold`](crate::QueueOptions::max_hold).
    #[error("the hold is lost: its time limit has passed")]
    TimeLimit,
}

impl LossReason {
    /// True if this process has closed the session of the hold, as at a planned end.
    ///
    /// True, too, if the runtime of the session has shut down. Events report such an end below the
    /// level of a warning, and metrics do not count it as a loss.
    pub fn is_own_close(self) -> bool {
        self == LossReason::Session(SessionEnd::Closed)
    }
}
