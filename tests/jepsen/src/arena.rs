//! What the clients and the faults of one run share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use zookeeper_recipes_jepsen::{Attempt, Outcome, Read, Store};

/// A client that has read and has not written.
#[derive(Clone, Copy, Debug)]
struct Turn {
    element: u64,
    token: i64,
    read: Read,
}

/// The store, the history, and the clients that are in their turns.
#[derive(Debug)]
pub(crate) struct Arena {
    ends: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) history: Vec<Attempt>,
    /// The turn of each client.
    turns: Vec<Option<Turn>>,
    /// How often an acquisition or a turn failed.
    pub(crate) failures: usize,
    /// The library and its version.
    pub(crate) library: String,
    next: u64,
    fault: Option<&'static str>,
}

/// How long the work and the way to the store take at most.
const LONGEST_WORK: u64 = 20;
const LONGEST_WAY: u64 = 10;

impl Arena {
    pub(crate) fn new(clients: usize, time: Duration) -> Arena {
        let turns = vec![None; clients];
        Arena {
            ends: Instant::now() + time,
            state: Mutex::new(State {
                turns,
                ..State::default()
            }),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    /// The fault of the writes from now on.
    pub(crate) fn begin(&self, fault: &'static str) {
        self.state().fault = Some(fault);
    }

    /// A client that is in its turn now.
    pub(crate) fn inside(&self) -> Option<usize> {
        self.state().turns.iter().position(Option::is_some)
    }

    /// The answer to a line of a client.
    ///
    /// # Errors
    ///
    /// If the line cannot be understood.
    pub(crate) fn answer(&self, client: usize, line: &str) -> anyhow::Result<String> {
        let mut state = self.state();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" => rest.clone_into(&mut state.library),
            "read" => {
                let token = rest.parse()?;
                state.next += 1;
                let (element, read) = (state.next, state.store.read(token));
                state.turns[client] = Some(Turn {
                    element,
                    token,
                    read,
                });
                let (work, way) = (
                    fastrand::u64(1..=LONGEST_WORK),
                    fastrand::u64(1..=LONGEST_WAY),
                );
                return Ok(format!("work {work} {way}"));
            }
            "write" => state.write(client, rest.parse()?),
            "failed" => {
                state.failures += 1;
                state.leave(client);
            }
            _ => anyhow::bail!("not understood: {line:?}"),
        }
        Ok(match self.is_over() {
            true => "stop".to_owned(),
            false => format!("again {}", fastrand::u64(0..20)),
        })
    }

    /// A client has ended.
    pub(crate) fn gone(&self, client: usize) {
        self.state().leave(client);
    }
}

impl State {
    fn write(&mut self, client: usize, holds: bool) {
        if let Some(turn) = self.turns[client].take() {
            let outcomes = self.store.write(turn.read, turn.element, holds);
            self.note(turn, outcomes);
        }
    }

    fn leave(&mut self, client: usize) {
        if let Some(turn) = self.turns[client].take() {
            self.note(turn, [Outcome::Unsent; 3]);
        }
    }

    fn note(&mut self, turn: Turn, outcomes: [Outcome; 3]) {
        self.history.push(Attempt {
            element: turn.element,
            token: turn.token,
            outcomes,
            fault: self.fault,
        });
    }
}
