//! Who of a queue holds and who waits for whom, judged in one pass over the queue.
//!
//! A rule decides about one contender from all contenders before it. [`Before`] keeps of these only
//! what the rule of a contender behind them can ask, so that n contenders cost n steps and not n².

use std::collections::HashMap;

use zookeeper_recipes_core::Contender;

use crate::kind::{QueueKind, Recipe, Wish, recipe, wish};

/// What the rule of its recipe says of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Holds,
    /// It waits for those contenders from the place `first` to before `end` that its rule counts.
    ///
    /// There are none if the contender wants more permits than there are.
    Waits {
        first: u32,
        end: u32,
    },
    /// No znode records it, as for Curator's leases.
    Unknown,
}

/// The contenders before the next one, each with its place and its session.
#[derive(Debug)]
pub(crate) struct Before {
    kind: QueueKind,
    permits: Option<u32>,
    locks: Last,
    readers_and_writers: Last,
    writers: Last,
    candidates: Last,
    weights: Weights,
}

impl Before {
    /// No contender of a queue of this kind, which has so many permits.
    pub(crate) fn new(kind: QueueKind, permits: Option<u32>) -> Before {
        Before {
            kind,
            permits,
            locks: Last::default(),
            readers_and_writers: Last::default(),
            writers: Last::default(),
            candidates: Last::default(),
            weights: Weights::default(),
        }
    }

    /// Adds a contender behind the others.
    pub(crate) fn push(&mut self, contender: &Contender, place: usize, session: i64) {
        let place = place_of(place);
        let Some(wish) = wish(contender.label()) else {
            return;
        };
        if Recipe::Lock.counts(wish) {
            self.locks.push(place, session);
        }
        if Recipe::ReadWriteLock.counts(wish) {
            self.readers_and_writers.push(place, session);
            if wish != Wish::Read {
                self.writers.push(place, session);
            }
        }
        if Recipe::Election.counts(wish) {
            self.candidates.push(place, session);
        }
        if let Wish::Permits(weight) = wish {
            self.weights.push(place, session, weight);
        }
    }

    /// What the rule of this contender says, if the contenders of the session `except` had left.
    pub(crate) fn standing(&self, contender: &Contender, except: Option<i64>) -> Standing {
        let Some(wish) = wish(contender.label()) else {
            return Standing::Unknown;
        };
        let last = match (recipe(self.kind, wish), wish) {
            (Recipe::Lock, _) => &self.locks,
            (Recipe::ReadWriteLock, Wish::Read) => &self.writers,
            (Recipe::ReadWriteLock, _) => &self.readers_and_writers,
            (Recipe::Election, _) => &self.candidates,
            (Recipe::Semaphore, Wish::Permits(weight)) => {
                return self.weights.standing(self.permits, weight, except);
            }
            _ => return Standing::Unknown,
        };
        match last.except(except) {
            Some(first) => Standing::Waits {
                first,
                end: first + 1,
            },
            None => Standing::Holds,
        }
    }
}

/// A list of names has far fewer than 2^32 bytes.
fn place_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The last contender, and the last one of another session.
#[derive(Debug, Default)]
struct Last {
    last: Option<(u32, i64)>,
    of_another: Option<u32>,
}

impl Last {
    fn push(&mut self, place: u32, session: i64) {
        if let Some((last, its)) = self.last.replace((place, session)) {
            if its != session {
                self.of_another = Some(last);
            }
        }
    }

    fn except(&self, session: Option<i64>) -> Option<u32> {
        match self.last {
            Some((place, its)) if Some(its) != session => Some(place),
            _ => self.of_another,
        }
    }
}

/// The contenders for permits.
#[derive(Debug, Default)]
struct Weights {
    /// The place, the session, and how many permits this contender and those before it want.
    contenders: Vec<(u32, i64, u64)>,
    of_sessions: HashMap<i64, u64>,
}

impl Weights {
    fn push(&mut self, place: u32, session: i64, weight: u32) {
        let weight = u64::from(weight);
        self.contenders.push((place, session, self.sum() + weight));
        *self.of_sessions.entry(session).or_default() += weight;
    }

    fn sum(&self) -> u64 {
        self.contenders.last().map_or(0, |(.., sum)| *sum)
    }

    /// A waiter waits for the last contenders that leave no room for it.
    fn standing(&self, permits: Option<u32>, weight: u32, except: Option<i64>) -> Standing {
        let Some(permits) = permits.map(u64::from) else {
            return Standing::Unknown;
        };
        let weight = u64::from(weight);
        if weight > permits {
            return Standing::Waits { first: 0, end: 0 };
        }
        let own = except.and_then(|session| self.of_sessions.get(&session));
        let own = own.copied().unwrap_or(0);
        if self.sum() - own + weight <= permits {
            return Standing::Holds;
        }
        let end = self.contenders.last().map_or(0, |(place, ..)| place + 1);
        Standing::Waits {
            first: self.first(permits - weight, own, except),
            end,
        }
    }

    /// The last place from which on the contenders want more than `room`.
    fn first(&self, room: u64, own: u64, except: Option<i64>) -> u32 {
        if own == 0 {
            let most = self.sum() - room;
            let before = |(.., sum): &(u32, i64, u64)| *sum < most;
            let index = self.contenders.partition_point(before);
            return self.contenders.get(index).map_or(0, |(place, ..)| *place);
        }
        let mut wanted = 0;
        let mut sum = self.sum();
        for index in (0..self.contenders.len()).rev() {
            let (place, session, _) = self.contenders[index];
            let before = index.checked_sub(1).map_or(0, |it| self.contenders[it].2);
            if Some(session) != except {
                wanted += sum - before;
            }
            if wanted > room {
                return place;
            }
            sum = before;
        }
        0
    }
}
