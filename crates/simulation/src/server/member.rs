//! One server of the ensemble.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::action::{Action, FromLeader, ToLeader};
use super::session::SessionRecord;
use super::tree::Tree;
use super::watches::Watches;
use crate::chance::fault::Way;

/// The relation of a server to its leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MemberState {
    /// It has its leader.
    #[default]
    Serving,
    /// It is cut off from its leader and does not know it yet.
    CutOff(Way),
    /// It leads, cut off from all its followers, and does not know it yet.
    Isolated,
    /// It has no leader, and serves nobody.
    Down,
}

/// How late a server answers requests for a session, and until when.
#[derive(Clone, Debug)]
pub(crate) struct SlowHandshakes {
    pub(crate) by: RangeInclusive<Duration>,
    pub(crate) until: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) tree: Tree,
    pub(crate) watches: Watches,
    pub(crate) state: MemberState,
    /// True if it and the leader can reach each other.
    pub(crate) linked: bool,
    /// True if it is stopped, as a process that was killed.
    pub(crate) stopped: bool,
    /// How much later it applies a transaction, beyond the lag of all followers.
    pub(crate) lag: Duration,
    /// How late it answers requests for a session.
    pub(crate) slow: Option<SlowHandshakes>,
    /// The number of this cut. The end of an earlier cut does not end it.
    pub(crate) cut: u64,
    /// The term whose leader it followed as it was cut off.
    pub(crate) followed: u64,
    /// The index of the first transaction not yet applied.
    pub(crate) applied: u64,
    /// When its last message to the leader arrives.
    pub(crate) last_up: Duration,
    /// When the leader's last message to it arrives.
    pub(crate) last_down: Duration,
    /// When it gets the last message that it handles at once.
    pub(crate) last_heard: Duration,
    pub(crate) held_up: VecDeque<ToLeader>,
    pub(crate) held_down: VecDeque<FromLeader>,
    /// The sessions that it has heard of since the last ping of its leader.
    pub(crate) touched: BTreeSet<i64>,
    /// The actions that wait since it was paused.
    pub(crate) paused: Option<Vec<Action>>,
}

/// A leader that is cut off. There is at most one.
#[derive(Debug)]
pub(crate) struct Isolated {
    pub(crate) server: usize,
    pub(crate) cut: u64,
    /// Its sessions, once the others have given it up. Until then they are the ensemble's.
    pub(crate) sessions: Option<BTreeMap<i64, SessionRecord>>,
    /// The sessions that it has tried to expire while nobody had given it up.
    pub(crate) expired: Vec<i64>,
    /// True if a commit is outstanding, so that syncs wait too.
    pub(crate) waits: bool,
}
