//! What a search is about: the workers, the events from outside, and the change of the rules.

/// The most workers and the most partitions of a model.
pub const MOST: usize = 3;

/// An event from outside: of an operator, of the network, or of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A session ends, and the process opens another one.
    Lapse,
    /// A process ends.
    Crash,
    /// A worker leaves: it gives all its partitions away, and ends.
    Leave,
    /// A process that has ended starts again.
    Return,
    /// A leader loses the leadership and keeps its session. Its plan may still be under way.
    Depose,
    /// A worker looks long before it is the leader, as if its server lagged.
    Lag,
    /// The time passes in which a worker waits for the next contender.
    Timeout,
    /// An operator freezes or thaws the plan.
    Freeze,
    /// An operator drains a worker, or ends that.
    Drain,
    /// An operator places a partition, or ends that.
    Place,
    /// The plan of a worker vanishes.
    Erase,
    /// Any plan is written for a worker.
    Scribble,
}

/// How long a vanished worker keeps its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// Not at all.
    Absent,
    /// Until a moment that the adversary chooses.
    Ends,
    /// For longer than the search.
    Lasts,
}

/// How a search begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// No plan, and no worker that has joined.
    Cold,
    /// The plan is carried out by the first so many workers. The others join.
    Settled(usize),
}

/// A rule that is left out, or a mistake in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A worker owns what its plan says, without the lock.
    OwnsByPlan,
    /// A worker whose session may have expired still owns.
    HasNoLease,
    /// The lock is released while the work is still drained.
    ReleasesBeforeItDrains,
    /// The writes of the leader are not guarded.
    WritesUnguarded,
    /// The leader looks at the workers and the orders only, and not at what they own.
    LooksNotAtOwned,
    /// A new leader waits for a change before it looks.
    LooksNotWhenElected,
    /// A grace begins only if the leader sees the worker vanish.
    TimesOnlyWhatItSees,
    /// A vanished worker counts as long as a plan names it.
    KeepsTheDead,
    /// A worker acts when the plan changes, and not by what the plan says.
    ActsOnChangesOnly,
    /// A contender waits on after its plan has changed.
    WaitsOn,
    /// A missing plan means that the worker owns nothing.
    MissingMeansNothing,
    /// A worker that gives a partition away does not wait for the next contender.
    GivesAtOnce,
    /// The leader compares no tokens if two workers list a partition.
    ComparesNoTokens,
    /// A vanished worker that was to get a partition is awaited, though another one owns it.
    AwaitsTheVanished,
    /// The leader plans from what is owned, and not from the present plan.
    PlansFromOwned,
    /// The leader ignores the present plan.
    PlansAfresh,
    /// The leader moves a partition though that improves nothing.
    MovesForNothing,
    /// The balance moves what an operator has placed.
    BalancesThePlaced,
    /// The leader does not count the moves that are under way.
    CountsNoMoves,
}

/// A search through all schedules.
#[derive(Clone, Debug)]
pub struct AssignmentModel {
    /// The number of workers.
    pub workers: usize,
    /// The number of partitions.
    pub partitions: usize,
    /// How the search begins.
    pub start: Start,
    /// The most events from outside in a schedule.
    pub events: u8,
    /// The events that the adversary may choose from.
    pub kinds: Vec<Event>,
    /// True if an event comes only once the plan is carried out.
    pub waits: bool,
    /// How long a vanished worker keeps its partitions.
    pub grace: Grace,
    /// The most moves at once.
    pub budget: usize,
    /// The most plans that the leaders write after one event, and the most grants. The counts are
    /// part of the state, so without them the search is shorter.
    pub most: Option<(u8, u8)>,
    /// The change of the rules.
    pub change: Option<Change>,
}

impl AssignmentModel {
    /// So many workers and partitions, with a settled plan, without events.
    pub fn new(workers: usize, partitions: usize) -> AssignmentModel {
        assert!(workers <= MOST && partitions <= MOST);
        AssignmentModel {
            workers,
            partitions,
            start: Start::Settled(workers),
            events: 0,
            kinds: Vec::new(),
            waits: false,
            grace: Grace::Absent,
            budget: 1,
            most: None,
            change: None,
        }
    }

    /// The same with at most so many of these events.
    #[must_use]
    pub fn with_events(mut self, events: u8, kinds: &[Event]) -> AssignmentModel {
        self.events = events;
        self.kinds = kinds.to_vec();
        self
    }

    /// The same with at most so many writes of plans, and grants, after each event.
    #[must_use]
    pub fn with_most(mut self, writes: u8, grants: u8) -> AssignmentModel {
        self.most = Some((writes, grants));
        self
    }

    /// The same with this change of the rules.
    #[must_use]
    pub fn changed(mut self, change: Change) -> AssignmentModel {
        self.change = Some(change);
        self
    }

    pub(super) fn has(&self, change: Change) -> bool {
        self.change == Some(change)
    }

    pub(super) fn allows(&self, event: Event) -> bool {
        self.kinds.contains(&event)
    }

    /// The worker that owns this partition at a settled start.
    pub(super) fn home(&self, partition: usize) -> Option<usize> {
        match self.start {
            Start::Cold => None,
            Start::Settled(workers) => Some(partition % workers),
        }
    }
}
