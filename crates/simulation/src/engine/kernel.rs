//! The clock and the chance of a simulation, and the record of what happens in it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_core::ensemble::SessionId;

use super::limits::{Gauge, Limits};
use crate::chance::rates::FaultRates;
use crate::record::counters::Counters;
use crate::record::trace::{Recorder, TraceEntry, TraceKind};

/// Work for after the lock is released, such as waking a task.
pub(crate) type Effect = Box<dyn FnOnce() + Send>;

/// A place in the order of all that happens: the time, then the number of the action.
pub(crate) type Slot = (Duration, u64);

/// What all parts of a simulation share: the network, the servers, the processes and the clients.
pub(crate) struct Kernel {
    pub(crate) now: Duration,
    pub(crate) rng: Rng,
    pub(crate) rates: FaultRates,
    pub(crate) counters: Counters,
    pub(crate) gauge: Gauge,
    pub(crate) recorder: Recorder,
    pub(crate) effects: Vec<Effect>,
    /// How many actions have been scheduled.
    scheduled: u64,
    /// How many of them are outstanding.
    outstanding: usize,
}

impl Kernel {
    pub(crate) fn new(seed: u64, limits: Limits, trace_limit: usize) -> Kernel {
        Kernel {
            now: Duration::ZERO,
            rng: Rng::with_seed(seed),
            rates: FaultRates::default(),
            counters: Counters::default(),
            gauge: Gauge::new(limits),
            recorder: Recorder::new(trace_limit),
            effects: Vec::new(),
            scheduled: 0,
            outstanding: 0,
        }
    }

    /// The place of an action that is scheduled for this time.
    fn next_slot(&mut self, at: Duration) -> Slot {
        let at = whole_milliseconds(at.max(self.now) + Duration::from_nanos(999_999));
        self.scheduled += 1;
        self.outstanding += 1;
        self.gauge.outstanding(self.outstanding);
        (at, self.scheduled)
    }

    /// A time within the range, in whole milliseconds: tokio's timers know no shorter ones.
    pub(crate) fn draw(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let (low, high) = (
            range.start().as_millis() as u64,
            range.end().as_millis() as u64,
        );
        Duration::from_millis(if low >= high {
            low
        } else {
            self.rng.u64(low..=high)
        })
    }

    pub(crate) fn draw_up_to(&mut self, longest: Duration) -> Duration {
        self.draw(&(Duration::ZERO..=longest))
    }

    /// True if an event of this probability happens.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// Writes a line into the trace. A session of 0 is none.
    pub(crate) fn trace(
        &mut self,
        kind: TraceKind,
        process: Option<&str>,
        session: i64,
        text: impl FnOnce() -> String,
    ) {
        if !self.recorder.is_on() {
            return;
        }
        self.recorder.record(TraceEntry {
            at: self.now,
            kind,
            process: process.map(str::to_owned),
            session: (session != 0).then_some(SessionId(session)),
            text: text(),
        });
    }

    pub(crate) fn effect(&mut self, effect: impl FnOnce() + Send + 'static) {
        self.effects.push(Box::new(effect));
    }
}

/// The agenda keeps whole milliseconds, so that a seed gives the same times on any clock.
pub(crate) fn whole_milliseconds(time: Duration) -> Duration {
    Duration::from_millis(time.as_millis() as u64)
}

/// The actions of one part of a simulation, in the order in which they are due.
///
/// Each part has an agenda of its own. All agendas share one count of entries, so that two actions
/// of one time happen in the order in which they were scheduled.
#[derive(Debug)]
pub(crate) struct Agenda<A> {
    entries: BTreeMap<Slot, A>,
}

impl<A> Agenda<A> {
    pub(crate) fn new() -> Agenda<A> {
        Agenda {
            entries: BTreeMap::new(),
        }
    }

    /// Schedules an action for this time, or for now if the time has passed.
    pub(crate) fn schedule(&mut self, kernel: &mut Kernel, at: Duration, action: A) {
        let slot = kernel.next_slot(at);
        self.entries.insert(slot, action);
    }

    /// When the next action is due.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.entries.keys().next().copied()
    }

    /// Takes the next action.
    pub(crate) fn take(&mut self, kernel: &mut Kernel) -> Option<A> {
        let (_, action) = self.entries.pop_first()?;
        kernel.outstanding -= 1;
        Some(action)
    }
}
