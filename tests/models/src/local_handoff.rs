//! The handoff of a hold within a process: may a guarded write of the first hold land under the
//! next one?
//!
//! Two threads write under the first hold, a third one lets go of it, and a task of the process
//! waits for it. Each step that a thread takes under a mutex is one action, and the adversary
//! chooses the order of the actions: a thread may pause between any two of them.
//!
//! # Where the model is wider than a connection
//! The network keeps no order, and a broken connection may deliver its requests at any time later.
//! Each of these adds schedules and takes none away.
//!
//! # What the model leaves out
//! The session does not end, and nobody else deletes the znode: the server then refuses the writes
//! of both holds.

use stateright::{Model, Property};

/// Until when a write keeps the hold from being handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// It never does.
    Never,
    /// Until it is sent.
    Sent,
    /// Until its answer comes, or its outcome is known to be unknown.
    Over,
    /// Until its answer comes.
    Answered,
}

/// A rule by which the process keeps the two holds apart.
#[derive(Clone, Copy, Debug)]
pub struct HandoffModel {
    /// Until when a write counts.
    pub counts: Until,
    /// True if a write looks at the hold in the step in which it begins to count, and not before.
    pub looks_as_it_counts: bool,
}

/// A guarded write of the first hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Its thread has not looked at the hold.
    New,
    /// Its thread has seen that the hold is held.
    Looked,
    /// It counts, and is not sent.
    Begun,
    /// It is sent, and has not arrived.
    UnderWay {
        /// True if the process waits for the answer.
        is_awaited: bool,
    },
    /// The server has applied or refused it.
    Done {
        /// True if the process waits for the answer.
        is_awaited: bool,
    },
    /// Nothing more comes of it.
    Over,
}

/// The first hold, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Its owner has not let go of it.
    Held,
    /// The next task of the process holds by the same znode.
    HandedOn,
    /// The deletion of the znode is sent.
    Released,
    /// The znode is deleted.
    Deleted,
    /// The next task holds by a znode of its own.
    NextHolds,
}

/// What the process, the network and the server know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The writes of the first hold.
    pub writes: [Write; 2],
    /// The number of writes that count.
    pub counted: i8,
    /// What has become of the hold.
    pub hold: Hold,
    /// True if the server has applied a write.
    pub has_applied: bool,
    /// True if the server has refused a write.
    pub has_refused: bool,
    /// True if the server has applied a write since the next task holds.
    pub has_landed_late: bool,
}

/// A step of a thread, of the network or of the server. The number is that of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The thread of a write looks at the hold.
    Look(usize),
    /// A write begins to count.
    Begin(usize),
    /// A write is sent.
    Send(usize),
    /// A write arrives at the server.
    Arrive(usize),
    /// A write is lost on its way.
    Lose(usize),
    /// The future of a write is dropped, or its connection breaks: no answer will come.
    GiveUp(usize),
    /// The answer to a write comes.
    Answer(usize),
    /// The owner hands the hold on, or sends the deletion of its znode.
    LetGo,
    /// The deletion arrives at the server.
    Delete,
    /// The next task holds by a znode of its own.
    Grant,
}

impl HandoffModel {
    /// The promise.
    pub const SAFE: &str = "no write of the first hold lands once the next task holds";
    /// What is seen if the rule is clean, lest the model leave it out.
    pub const SEEN: [&str; 4] = [
        "the hold is handed on after a write",
        "the hold is released because of a write",
        "a write is refused",
        "two writes are under way",
    ];

    /// The rule of the library.
    pub fn of_the_library() -> HandoffModel {
        HandoffModel {
            counts: Until::Answered,
            looks_as_it_counts: true,
        }
    }

    fn steps_of(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        match state.writes[index] {
            Write::New if self.looks_as_it_counts => actions.push(Action::Begin(index)),
            Write::New => actions.push(Action::Look(index)),
            Write::Looked => actions.push(Action::Begin(index)),
            Write::Begun => actions.push(Action::Send(index)),
            Write::UnderWay { is_awaited } => {
                actions.extend([Action::Arrive(index), Action::Lose(index)]);
                actions.extend(is_awaited.then_some(Action::GiveUp(index)));
            }
            Write::Done { is_awaited: true } => {
                actions.extend([Action::Answer(index), Action::GiveUp(index)]);
            }
            Write::Done { is_awaited: false } | Write::Over => {}
        }
    }

    /// What becomes of a write, and by how much the count changes.
    fn step(&self, state: &State, action: Action, write: Write) -> (Write, i8) {
        let is_open = state.hold != Hold::HandedOn;
        let counts_until = |until| if self.counts == until { -1 } else { 0 };
        match (action, write) {
            (Action::Look(_), _) if is_open => (Write::Looked, 0),
            (Action::Begin(_), write) if is_open || write == Write::Looked => (
                Write::Begun,
                if self.counts == Until::Never { 0 } else { 1 },
            ),
            (Action::Send(_), _) => (
                Write::UnderWay { is_awaited: true },
                counts_until(Until::Sent),
            ),
            (Action::Arrive(_), Write::UnderWay { is_awaited }) => (Write::Done { is_awaited }, 0),
            (Action::GiveUp(_), Write::UnderWay { .. }) => (
                Write::UnderWay { is_awaited: false },
                counts_until(Until::Over),
            ),
            (Action::GiveUp(_), _) => {
                (Write::Done { is_awaited: false }, counts_until(Until::Over))
            }
            (Action::Answer(_), _) => {
                let is_counted = matches!(self.counts, Until::Over | Until::Answered);
                (Write::Over, if is_counted { -1 } else { 0 })
            }
            // It is lost, or refused by the process.
            _ => (Write::Over, 0),
        }
    }
}

impl Model for HandoffModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            writes: [Write::New; 2],
            counted: 0,
            hold: Hold::Held,
            has_applied: false,
            has_refused: false,
            has_landed_late: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for index in 0..state.writes.len() {
            self.steps_of(state, index, actions);
        }
        actions.extend(match state.hold {
            Hold::Held => Some(Action::LetGo),
            Hold::Released => Some(Action::Delete),
            Hold::Deleted => Some(Action::Grant),
            Hold::HandedOn | Hold::NextHolds => None,
        });
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = *last;
        match action {
            Action::LetGo if last.counted == 0 => state.hold = Hold::HandedOn,
            Action::LetGo => state.hold = Hold::Released,
            Action::Delete => state.hold = Hold::Deleted,
            Action::Grant => state.hold = Hold::NextHolds,
            Action::Look(index)
            | Action::Begin(index)
            | Action::Send(index)
            | Action::Arrive(index)
            | Action::Lose(index)
            | Action::GiveUp(index)
            | Action::Answer(index) => {
                let (write, counted) = self.step(last, action, last.writes[index]);
                state.writes[index] = write;
                state.counted += counted;
            }
        }
        if let Action::Arrive(_) = action {
            let stands = matches!(last.hold, Hold::Held | Hold::HandedOn | Hold::Released);
            state.has_applied |= stands;
            state.has_refused |= !stands;
            state.has_landed_late |= last.hold == Hold::HandedOn;
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let [handed_on, released, refused, two] = Self::SEEN;
        vec![
            Property::always(Self::SAFE, |_, state: &State| !state.has_landed_late),
            Property::sometimes(handed_on, |_, state: &State| {
                state.hold == Hold::HandedOn && state.has_applied
            }),
            Property::sometimes(released, |_, state: &State| {
                state.hold == Hold::NextHolds && state.counted > 0
            }),
            Property::sometimes(refused, |_, state: &State| state.has_refused),
            Property::sometimes(two, |_, state: &State| {
                let is_under_way = |write: &Write| matches!(write, Write::UnderWay { .. });
                state.writes.iter().all(is_under_way)
            }),
        ]
    }
}
