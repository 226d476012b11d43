//! A contender: its session, its watches, and what it knows.

use super::action::Side;
use super::server::{Event, Label, Zxid};

/// How a contender has come to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// By a list.
    List,
    /// By a marked release of its predecessor.
    Marked,
    /// By the deletion of the only contender before it.
    OnlyOne,
    /// By the number of its znode.
    Alone,
    /// By a downgrade.
    Downgrade,
}

impl Way {
    pub const ALL: [Way; 5] = [
        Way::List,
        Way::Marked,
        Way::OnlyOne,
        Way::Alone,
        Way::Downgrade,
    ];
}

/// What a waiter waits on, and what it may conclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The predecessor.
    pub on: Zxid,
    /// True if a write to the predecessor means that this contender holds.
    pub grants_on_mark: bool,
    /// True if the deletion of the predecessor means that this contender holds.
    pub stands_alone: bool,
}

/// Where a contender is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It has no znode in the queue.
    #[default]
    Out,
    /// Its znode is created, and the answer has not come.
    Entered,
    /// It has to list the queue.
    Looks,
    /// It would hold by its list, and reads which successor the directory names.
    AsksForSuccessor,
    /// It waits, or sets the watches.
    Waits(Wait),
    Holds(Way),
    /// It holds, and has deleted its znode to create another one.
    Replaces,
    Crashed,
}

/// The contender's own znode, as it knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Own {
    /// The transaction that created it.
    pub czxid: Zxid,
    pub number: u16,
    pub label: Label,
}

/// A deletion on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leaving {
    pub own: Own,
    /// True if it is marked as a release.
    pub marked: bool,
    /// True if the contender held alone by this znode.
    pub alone: bool,
}

/// A watch of a contender on a znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The znode.
    pub on: Zxid,
    /// True if the server has it. False once its event is on its way.
    pub armed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Contender {
    pub phase: Phase,
    pub own: Option<Own>,
    /// The deletions on their way, the oldest first.
    pub leaving: Vec<Leaving>,
    /// How often it may still enter.
    pub rounds: u8,
    /// The server that it is connected to.
    pub at: Option<Side>,
    /// The last transaction that an answer has shown.
    pub seen: Zxid,
    /// True if the connection has not broken since the create, or since the last watch was set.
    pub is_unbroken: bool,
    pub own_watch: Option<Watch>,
    pub watch: Option<Watch>,
    /// The candidates behind it in the list by which it would hold.
    pub behind: Vec<Zxid>,
    /// The events on their way, the oldest first.
    pub events: Vec<Event>,
    /// How many of the first events come in any order.
    pub missed: usize,
    /// The number and the transaction of its last znode by which it held alone.
    pub last_alone: Option<(u16, Zxid)>,
    /// The same, as the create of its znode was sent.
    pub comes_after: Option<(u16, Zxid)>,
    pub is_alone: bool,
    /// True if its turn has come at the leader.
    pub had_turn: bool,
    /// True if an operator has deleted its znode after its turn had come.
    pub is_disregarded: bool,
    /// The successor that was behind it as its turn came.
    pub passed_over: Option<Zxid>,
}

impl Contender {
    pub(super) fn new(rounds: u8, at: Side) -> Contender {
        Contender {
            rounds,
            at: Some(at),
            is_unbroken: true,
            ..Contender::default()
        }
    }

    pub fn holds(&self) -> bool {
        matches!(self.phase, Phase::Holds(_) | Phase::Replaces)
    }

    /// Drops its watches and what it knows of its place.
    pub(super) fn leave(&mut self) -> Option<Own> {
        let left = Contender {
            leaving: std::mem::take(&mut self.leaving),
            rounds: self.rounds,
            at: self.at,
            seen: self.seen,
            is_unbroken: self.is_unbroken,
            last_alone: self.last_alone,
            ..Contender::default()
        };
        std::mem::replace(self, left).own
    }

    /// Leaves the queue: its znode is to be deleted.
    pub(super) fn leave_by(&mut self, marked: bool) {
        let alone = self.is_alone;
        if let Some(own) = self.leave() {
            self.leaving.push(Leaving { own, marked, alone });
        }
    }

    pub(super) fn grant(&mut self, way: Way) {
        self.phase = Phase::Holds(way);
        self.watch = None;
        self.behind.clear();
        self.events
            .retain(|event| matches!(event, Event::Own { .. }));
        self.missed = self.missed.min(self.events.len());
    }
}
