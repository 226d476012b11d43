//! What the clients and the faults of one run share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::checker::{Attempt, Look, Outcome};
use crate::clock;
use crate::fault::Fault;
use crate::store::{Read, Store};

/// A client that has read and has not written.
#[derive(Clone, Debug)]
struct Turn {
    read: Read,
    attempt: Attempt,
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
    turns: Vec<Option<Turn>>,
    /// When this program last answered each client.
    answered: Vec<Duration>,
    /// How many times in the clients' lines are not between the answer before the line and the
    /// line's arrival. The clock of such a client is not the clock of this machine.
    pub(crate) foreign_times: usize,
    /// What the clients said that cannot be understood.
    pub(crate) misunderstood: Vec<String>,
    /// How often an acquisition or a turn failed.
    pub(crate) failures: usize,
    pub(crate) library: String,
    next: u64,
    fault: Option<Fault>,
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
                answered: vec![Duration::ZERO; clients],
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
    pub(crate) fn begin(&self, fault: Fault) {
        self.state().fault = Some(fault);
    }

    /// A client that is in its turn now.
    pub(crate) fn inside(&self) -> Option<usize> {
        self.state().turns.iter().position(Option::is_some)
    }

    /// The answer to a line of a client. The client waits for none after its look.
    pub(crate) fn answer(&self, client: usize, line: &str) -> anyhow::Result<Option<String>> {
        let mut state = self.state();
        let answer = self.answer_of(&mut state, client, line);
        if answer.is_err() {
            state.misunderstood.push(line.to_owned());
        }
        answer
    }

    fn answer_of(
        &self,
        state: &mut State,
        client: usize,
        line: &str,
    ) -> anyhow::Result<Option<String>> {
        let now = clock::now();
        match *line.split(' ').collect::<Vec<_>>() {
            ["ready", ..] => line["ready".len()..].trim().clone_into(&mut state.library),
            ["read", token, acquired] => {
                let acquired = state.stated(client, acquired, now)?;
                state.read(client, token.parse()?, acquired);
                state.answered[client] = now;
                let work = fastrand::u64(1..=LONGEST_WORK);
                let way = fastrand::u64(1..=LONGEST_WAY);
                return Ok(Some(format!("work {work} {way}")));
            }
            ["look", held, began] => {
                let began = state.stated(client, began, now)?;
                let held = held.parse()?;
                state.look(client, Look { began, held })?;
                return Ok(None);
            }
            ["write"] => state.write(client)?,
            ["failed", ..] => {
                state.failures += 1;
                state.leave(client);
            }
            _ => anyhow::bail!("not understood: {line:?}"),
        }
        state.answered[client] = now;
        Ok(Some(match self.is_over() {
            true => "stop".to_owned(),
            false => format!("again {}", fastrand::u64(0..20)),
        }))
    }

    pub(crate) fn gone(&self, client: usize) {
        self.state().leave(client);
    }
}

impl State {
    /// The time that a client states, which has to be since the last answer to this client.
    fn stated(&mut self, client: usize, time: &str, now: Duration) -> anyhow::Result<Duration> {
        let time = Duration::from_nanos(time.parse()?);
        if time < self.answered[client] || time > now {
            self.foreign_times += 1;
        }
        Ok(time)
    }

    fn read(&mut self, client: usize, token: i64, acquired: Duration) {
        self.next += 1;
        let attempt = Attempt {
            element: self.next,
            token,
            acquired,
            look: None,
            outcomes: [Outcome::Unsent; 3],
            fault: None,
        };
        let read = self.store.read(token);
        self.turns[client] = Some(Turn { read, attempt });
    }

    fn look(&mut self, client: usize, look: Look) -> anyhow::Result<()> {
        let turn = self.turns[client].as_mut();
        turn.context("a look before a read")?.attempt.look = Some(look);
        Ok(())
    }

    fn write(&mut self, client: usize) -> anyhow::Result<()> {
        let turn = self.turns[client].as_mut();
        let Turn { read, attempt } = turn.context("a write before a read")?;
        let look = attempt.look.context("a write before a look")?;
        attempt.outcomes = self.store.write(*read, attempt.element, look.held);
        self.leave(client);
        Ok(())
    }

    fn leave(&mut self, client: usize) {
        if let Some(Turn { attempt, .. }) = self.turns[client].take() {
            let fault = self.fault;
            self.history.push(Attempt { fault, ..attempt });
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/arena.rs"]
mod tests;
