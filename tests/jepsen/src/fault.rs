//! What can happen to the clients and the servers of a run.

use clap::ValueEnum;

/// A fault. The help says what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    #[value(help = "a holder is paused (SIGSTOP)")]
    PausedHolder,
    #[value(help = "a client is cut off, both ways")]
    CutOff,
    #[value(help = "the packets of a client are lost")]
    CutToServers,
    #[value(help = "the packets to a client are lost")]
    CutToClient,
    #[value(help = "the leader is cut off from the other members")]
    IsolatedLeader,
    #[value(help = "a follower is cut off from the other members")]
    IsolatedFollower,
    #[value(help = "the leader is paused (SIGSTOP)")]
    PausedLeader,
    #[value(help = "the leader is killed (SIGKILL)")]
    KilledLeader,
    #[value(help = "the disk of all members stands still")]
    StalledDisk,
}

impl Fault {
    /// Those of a run that only shows that it works.
    pub(crate) const QUICK: [Fault; 2] = [Fault::PausedHolder, Fault::CutToClient];
}
