//! Moves that make no progress, and the workers that are set aside because of them.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// 100 years. A longer limit is this one, because no clock may overflow by it.
pub(crate) const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A move is late after so many limits, even if its next owner takes other partitions meanwhile.
const AT_MOST: u32 = 5;

/// What a worker does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not take a partition that it should own.
    TakesNone,
    /// It does not give a partition for which the next owner waits.
    GivesNone,
}

impl Fault {
    /// The reason in the event, and in the plan of the worker.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Fault::TakesNone => "takes_none",
            Fault::GivesNone => "gives_none",
        }
    }
}

/// Why a worker is set aside: it gets no further partition, and gives none away, until it shows
/// progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aside {
    pub(crate) fault: Fault,
    /// The partition of the move that was late.
    pub(crate) partition: String,
    /// What was known of the worker when it was set aside.
    mark: Option<Progress>,
}

/// A partition that is planned with another worker than owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnderWay<'a> {
    pub(crate) partition: &'a str,
    pub(crate) owner: Option<&'a str>,
    pub(crate) to: &'a str,
}

/// What the leader knows of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The token of its membership.
    pub(crate) member: i64,
    /// The newest token of a partition that it owns.
    pub(crate) newest: i64,
}

/// A move that has taken too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) partition: String,
    pub(crate) to: String,
}

/// How long each move has been under way, and who is set aside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    /// By the partition.
    begun: BTreeMap<String, Begun>,
    /// What each member has shown last, and when.
    shown: BTreeMap<String, (Progress, Instant)>,
    aside: BTreeMap<String, Aside>,
}

/// A move that has begun.
#[derive(Clone, Debug)]
struct Begun {
    to: String,
    since: Instant,
    /// True if the move is late, and the reason is known. It does not count among those under way.
    is_stuck: bool,
}

impl Begun {
    fn new(to: &str, since: Instant) -> Begun {
        Begun {
            to: to.to_owned(),
            since,
            is_stuck: false,
        }
    }
}

impl Patience {
    /// The workers that are set aside.
    pub(crate) fn aside(&self) -> &BTreeMap<String, Aside> {
        &self.aside
    }

    pub(crate) fn is_stuck(&self, partition: &str) -> bool {
        self.begun.get(partition).is_some_and(|it| it.is_stuck)
    }

    /// Takes over what an earlier leader has noted of a worker.
    pub(crate) fn take_over(&mut self, worker: &str, note: &str) {
        if let Some(aside) = Aside::parse(note) {
            self.aside.entry(worker.to_owned()).or_insert(aside);
        }
    }

    /// Notes what moves now, and who owns what. Returns how many moves have ended, and the workers
    /// that are set aside no more.
    pub(crate) fn follow(
        &mut self,
        moves: &[UnderWay<'_>],
        members: &BTreeMap<&str, Progress>,
        owned: &BTreeMap<String, (String, i64)>,
        now: Instant,
    ) -> (usize, Vec<String>) {
        let mut before = std::mem::take(&mut self.begun);
        for each in moves {
            let begun = before.remove(each.partition);
            let begun = begun.filter(|it| it.to == each.to);
            // What a worker owned that has vanished moves once the worker is back.
            if begun.is_some() || members.contains_key(each.to) {
                let begun = begun.unwrap_or_else(|| Begun::new(each.to, now));
                self.begun.insert(each.partition.to_owned(), begun);
            }
        }
        let ended = before.len();
        self.shown
            .retain(|worker, _| members.contains_key(&**worker));
        for (worker, progress) in members {
            match self.shown.get(*worker) {
                Some((shown, _)) if shown == progress => {}
                _ => drop(self.shown.insert((*worker).to_owned(), (*progress, now))),
            }
        }
        let mut back = Vec::new();
        self.aside.retain(|worker, aside| {
            let Some(now) = members.get(&**worker) else {
                // Its move is late again if it comes back and takes none.
                if let Some(begun) = self.begun.get_mut(&aside.partition) {
                    begun.is_stuck = false;
                }
                return false;
            };
            let mark = *aside.mark.get_or_insert(*now);
            // The mark of a later leader may be newer than what the worker has taken.
            let owner = owned.get(&aside.partition).map(|(owner, _)| owner);
            let has_ended = now.member != mark.member
                || match aside.fault {
                    Fault::TakesNone => now.newest > mark.newest || owner == Some(worker),
                    Fault::GivesNone => !moves.iter().any(|each| {
                        each.partition == aside.partition && each.owner == Some(worker)
                    }),
                };
            if has_ended {
                back.push(worker.clone());
            }
            !has_ended
        });
        (ended, back)
    }

    /// Notes what begins to move now. Returns the time, if anything does.
    pub(crate) fn begin<'a>(
        &mut self,
        moves: impl Iterator<Item = (&'a str, &'a str)>,
        now: Instant,
    ) -> Option<Instant> {
        let begun = moves.map(|(partition, to)| (partition.to_owned(), Begun::new(to, now)));
        let before = self.begun.len();
        self.begun.extend(begun);
        (self.begun.len() > before).then_some(now)
    }

    /// The moves that have taken longer than the limit, and when the next one will have.
    pub(crate) fn late(
        &self,
        moves: &[UnderWay<'_>],
        limit: Duration,
        now: Instant,
    ) -> (Vec<Late>, Option<Instant>) {
        let limit = limit.min(LONGEST);
        let (mut late, mut next) = (Vec::new(), None);
        for each in moves {
            let is_aside = |worker: &str| self.aside.contains_key(worker);
            let begun = self.begun.get(each.partition);
            // A worker that has vanished takes nothing, and its time is the grace.
            let (Some(begun), Some((_, shown))) = (begun, self.shown.get(each.to)) else {
                continue;
            };
            if begun.is_stuck || is_aside(each.to) || each.owner.is_some_and(is_aside) {
                continue;
            }
            let since = begun.since;
            let ends = (since.max(*shown) + limit).min(since + limit.saturating_mul(AT_MOST));
            if ends <= now {
                late.push(Late {
                    partition: each.partition.to_owned(),
                    to: each.to.to_owned(),
                });
            } else {
                next = Some(next.map_or(ends, |next: Instant| next.min(ends)));
            }
        }
        (late, next)
    }

    /// Sets the worker aside that holds up a move: by the workers in the queue of the partition's
    /// lock, the first of which has the lock. Returns it. `None` if the next owner has the lock.
    pub(crate) fn blame(&mut self, late: &Late, queue: &[String]) -> Option<(String, Fault)> {
        if let Some(begun) = self.begun.get_mut(&late.partition) {
            begun.is_stuck = true;
        }
        let first = queue.first().filter(|_| queue.contains(&late.to));
        let (worker, fault) = match first {
            Some(first) if *first == late.to => return None,
            Some(first) => (first, Fault::GivesNone),
            None => (&late.to, Fault::TakesNone),
        };
        // Another program may have the lock.
        let (progress, _) = self.shown.get(worker)?;
        let aside = Aside {
            fault,
            partition: late.partition.clone(),
            mark: Some(*progress),
        };
        self.aside.insert(worker.clone(), aside);
        Some((worker.clone(), fault))
    }
}

impl Aside {
    /// The note in the plan of a worker that is set aside.
    pub(crate) fn note(&self) -> String {
        format!("{} {}", self.fault.word(), self.partition)
    }

    fn parse(note: &str) -> Option<Aside> {
        let (word, partition) = note.split_once(' ')?;
        let mut faults = [Fault::TakesNone, Fault::GivesNone].into_iter();
        Some(Aside {
            fault: faults.find(|fault| fault.word() == word)?,
            partition: partition.to_owned(),
            mark: None,
        })
    }
}
