//! What a search is about: the contenders, the faults, and the change of the library.

use super::server::Label;

/// The program of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// These recipes.
    Library,
    /// Curator's mutexes: they list the queue after each event.
    Curator,
    /// Curator's `LeaderLatch`: it lists the queue after a deletion, and sleeps through a write.
    Latch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    pub kind: Kind,
    /// What it contends for at first.
    pub label: Label,
    /// What it contends for later.
    pub then: Label,
}

impl Party {
    /// A contender that always contends for the same.
    pub fn new(kind: Kind, label: Label) -> Party {
        Party {
            kind,
            label,
            then: label,
        }
    }
}

/// What the adversary may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    GiveUp,
    /// A process ends, and its session expires later.
    Crash,
    /// A session expires while its process runs.
    Expire,
    /// A connection breaks, with the events on their way.
    Disconnect,
    /// An operator deletes a contender's znode.
    Delete,
    /// An operator writes to a contender's znode.
    Write,
    /// The server deletes the empty directory.
    Reap,
    /// Any process names a candidate as the successor.
    Name,
}

/// A step of a proof that is left out, or a mistake in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    MarksGivingUp,
    /// The access control list lets everybody write.
    EverybodyWrites,
    /// A reader marks its release, though it can hold beside others.
    MarksReads,
    /// A marked release writes to the znode in one transaction, and deletes it in another.
    WritesBeforeItDeletes,
    /// A write to any contender means a release.
    BelievesEveryWrite,
    /// A waiter watches the first contender, and does not ask the rule about those in between.
    AsksNoRule,
    /// A waiter sets no watch on its own znode.
    WatchesNotItsOwn,
    /// A waiter relies on the order of events after a reconnect.
    TrustsAReconnect,
    /// A session that has expired still holds and grants.
    HasNoLease,
    /// Any deletion of the predecessor grants.
    BelievesEveryDeletion,
    /// The deletion of an only predecessor grants, even if it may be replaced.
    ForgetsReplacements,
    /// A candidate leads without a look at the directory's data and at those behind it.
    ReadsNoDirectory,
    /// A contender that held beside others counts as alone.
    IsAloneBesideOthers,
    /// A contender counts as gone before its deletion is confirmed.
    IsGoneTooSoon,
    /// Any later number counts as the next one.
    ComparesNoNumber,
    /// The transactions between two znodes are not counted.
    CountsNoTransactions,
    /// The last number of the count is taken for the next one.
    CountsOnAtTheEnd,
    /// Contenders at the end of the count are ordered by their names.
    OrdersByName,
    /// A writer downgrades at the end of the count.
    ReplacesAtTheEnd,
    /// A writer downgrades by a deletion, and then a create.
    ReplacesInTwoTransactions,
    /// A transaction of several deletions that fails counts as done.
    TakesAFailureForDone,
    /// Candidates mark their resignation.
    MarksInAnElection,
    /// A list leaves out an old znode of the same session.
    OverlooksItsOldZnode,
    /// A connection that breaks drops the deletions on their way.
    DropsDeletionsAtABreak,
    /// After a lost answer the znode is looked for on a server that lags behind.
    LooksWithoutSync,
    /// A waiter whose predecessor has gone before the watch was set waits on.
    IgnoresAMissingPredecessor,
}

/// A search through all schedules.
#[derive(Clone, Debug)]
pub struct HandoffModel {
    pub parties: Vec<Party>,
    /// How often each contender enters the queue.
    pub rounds: u8,
    /// The most faults in a schedule.
    pub faults: u8,
    /// The faults that the adversary may choose from.
    pub kinds: Vec<Fault>,
    /// The number of the first znode.
    pub first: u16,
    pub downgrades: bool,
    /// True if a contender may enter while its last znode is still to be deleted.
    pub in_background: bool,
    /// How many contenders begin at the leader. The others begin at the follower.
    pub at_the_leader: usize,
    pub change: Option<Change>,
}

impl HandoffModel {
    /// So many contenders of the library, which enter once each, without faults.
    pub fn new(contenders: usize, label: Label) -> HandoffModel {
        let party = Party::new(Kind::Library, label);
        HandoffModel {
            parties: vec![party; contenders],
            rounds: 1,
            faults: 0,
            kinds: Vec::new(),
            first: 0,
            downgrades: false,
            in_background: false,
            at_the_leader: 0,
            change: None,
        }
    }

    /// The same with at most so many of these faults.
    #[must_use]
    pub fn with_faults(mut self, faults: u8, kinds: &[Fault]) -> HandoffModel {
        self.faults = faults;
        self.kinds = kinds.to_vec();
        self
    }

    #[must_use]
    pub fn changed(mut self, change: Change) -> HandoffModel {
        self.change = Some(change);
        self
    }

    /// The same with another program as the contender of this index.
    #[must_use]
    pub fn with(mut self, index: usize, party: Party) -> HandoffModel {
        self.parties[index] = party;
        self
    }

    pub(super) fn has(&self, change: Change) -> bool {
        self.change == Some(change)
    }

    pub(super) fn allows(&self, fault: Fault) -> bool {
        self.kinds.contains(&fault)
    }

    /// True if the release of this contender can be marked.
    pub(super) fn marks(&self, index: usize, label: Label) -> bool {
        let holds_only_first = matches!(label, Label::Lock | Label::Write)
            || (label == Label::Read && self.has(Change::MarksReads))
            || (label == Label::Candidate && self.has(Change::MarksInAnElection));
        self.parties[index].kind == Kind::Library && holds_only_first
    }

    /// True if the contender differs from the one before it by its index only.
    pub(super) fn is_as_the_last(&self, index: usize) -> bool {
        index > 0
            && self.parties[index] == self.parties[index - 1]
            && index != self.at_the_leader
            && !self.has(Change::OrdersByName)
    }
}
