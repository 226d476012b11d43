//! The steps of the contenders, of the servers and of the adversary.

use super::server::Zxid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Leader,
    /// The follower that lags.
    Follower,
}

/// One step. The first number is the contender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The leader creates a contender's znode, and the directory if it is missing.
    Enter(usize),
    /// A contender holds by the number of its znode.
    ComeBack(usize),
    List(usize),
    /// A candidate that would hold reads the directory's data.
    ReadDirectory(usize),
    /// A waiter sets the watch on its own znode.
    WatchOwn(usize),
    WatchPredecessor(usize),
    /// An event of this place arrives.
    Deliver(usize, usize),
    /// A writer replaces its znode by a reader's.
    Downgrade(usize),
    /// A downgrade that was begun by a deletion ends.
    EndDowngrade(usize),
    Release {
        contender: usize,
        marked: bool,
    },
    /// The leader applies the deletion of this place.
    Delete(usize, usize),
    /// The leader applies a transaction of two deletions, or refuses it.
    DeleteTogether(usize),
    /// The follower applies the next operation.
    Apply,
    /// A contender connects again.
    Reconnect(usize, Side),
    /// The session of a process that has ended expires.
    Bury(usize),
    /// [`Fault::GiveUp`](super::Fault::GiveUp).
    GiveUp(usize),
    /// [`Fault::Crash`](super::Fault::Crash).
    Crash(usize),
    /// [`Fault::Expire`](super::Fault::Expire).
    Expire(usize),
    /// [`Fault::Disconnect`](super::Fault::Disconnect).
    Disconnect(usize),
    /// [`Fault::Delete`](super::Fault::Delete) of this znode.
    OperatorDeletes(Zxid),
    /// [`Fault::Write`](super::Fault::Write) to this znode.
    OperatorWrites(Zxid),
    /// [`Fault::Reap`](super::Fault::Reap).
    Reap,
    /// [`Fault::Name`](super::Fault::Name) this znode.
    Name(Zxid),
}

impl Action {
    /// True if the adversary chooses this step as one of its faults.
    pub fn is_a_fault(self) -> bool {
        matches!(
            self,
            Action::GiveUp(_)
                | Action::Crash(_)
                | Action::Expire(_)
                | Action::Disconnect(_)
                | Action::OperatorDeletes(_)
                | Action::OperatorWrites(_)
                | Action::Reap
                | Action::Name(_)
        )
    }
}
