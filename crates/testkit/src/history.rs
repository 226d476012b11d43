//! A checker of holds: do holds overlap that must not, by the holders' own accounts?
//!
//! A contender reports to a [`History`] when it begins to hold, and when it releases. A store asks
//! the history whether to accept a write. The history returns the promises that were broken. It
//! does not look at the server, so it works with real ensembles and with simulated ones.
//!
//! Each hold has a weight, and the weights of all holds together are at most the capacity:
//!
//! | hold | weight |
//! |---|---|
//! | of an exclusive lock, of a writer | the capacity |
//! | of a reader | 1 |
//! | of a semaphore | its permits |
//!
//! An [ordered](History::ordered) history also checks the order: first come, first served. It does
//! not know the order unless every contender is reported.
//!
//! ```
//! use zookeeper_recipes_core::{ConnectOptions, Session};
//! use zookeeper_recipes_lock::ExclusiveLock;
//! use zookeeper_recipes_testkit::history::History;
//! use zookeeper_recipes_simulation::{Simulation};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let simulation = Simulation::default();
//! let session = Session::open(simulation.ensemble("node-7"), ConnectOptions::new()).await?;
//! let lock = ExclusiveLock::new(&session, "/held")?;
//! let mut history = History::new(1);
//!
//! let hold = lock.acquire().await?;
//! let (number, violations) = history.granted("node-7", 1, &hold.view());
//! assert!(violations.is_empty(), "{violations:?}");
//! // ... the work under the hold, and then:
//! history.letting_go(number);
//! hold.release().await?;
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use zookeeper_recipes_core::{FencingToken, HoldView, SessionId};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The promise.
    pub promise: &'static str,
    /// The event that breaks it.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.promise, self.text)
    }
}

/// A hold that its owner has not released.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Held {
    /// The holder.
    pub who: String,
    /// How much of the capacity it holds.
    pub weight: u64,
    /// The view that knows whether the hold is held now.
    pub hold: HoldView,
}

/// A hold that was granted at some time.
#[derive(Clone, Debug)]
struct Granted {
    who: String,
    weight: u64,
    token: FencingToken,
    path: String,
    /// `None` if the holder is another program.
    view: Option<HoldView>,
}

impl Granted {
    fn by(held: &Held) -> Granted {
        Granted {
            who: held.who.clone(),
            weight: held.weight,
            token: held.hold.fencing_token(),
            path: held.hold.node_path().to_owned(),
            view: Some(held.hold.clone()),
        }
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.view {
            Some(view) => write!(formatter, "{} ({view:?})", self.who),
            None => write!(formatter, "{} ({})", self.who, self.path),
        }
    }
}

/// A contender in the queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    weight: u64,
    /// The most that could be held in all at a moment when there was room for this contender.
    room: Option<u64>,
}

/// The holds of one recipe, and the writes that a store accepted from their owners.
///
/// If contenders run on several threads, put it behind a mutex. It keeps a clone of each
/// [`HoldView`] until the owner [releases](Self::letting_go).
#[derive(Debug)]
pub struct History {
    capacity: u64,
    /// How much of it can be held now.
    in_force: u64,
    /// The contenders by their tokens, which is the order in which they came.
    queue: Option<BTreeMap<FencingToken, Queued>>,
    held: BTreeMap<u64, Held>,
    /// The holds of other programs.
    elsewhere: BTreeMap<u64, Granted>,
    next: u64,
    /// Of each weight, the grant with the newest token.
    newest: BTreeMap<u64, Granted>,
    disregarded_znodes: BTreeSet<String>,
    disregarded_sessions: BTreeSet<SessionId>,
    /// The znodes that have gone with the data of the servers: path, token and session of each.
    gone: BTreeSet<(String, FencingToken, SessionId)>,
    /// The holds that are ignored, each by its path, its token and its session.
    disregarded_holds: BTreeSet<(String, FencingToken, SessionId)>,
    /// The holds of these znodes, and those that were released before the data went.
    void: BTreeSet<u64>,
    /// The newest token that the store has seen, of holds that exclude all others.
    store: Option<FencingToken>,
    /// The same, of guarded writes.
    guarded: Option<FencingToken>,
}

/// The znode of a hold: its path, its token and its session.
fn znode_of(hold: &HoldView) -> (String, FencingToken, SessionId) {
    let (path, token) = (hold.node_path().to_owned(), hold.fencing_token());
    (path, token, hold.session_id())
}

impl History {
    /// The history of a recipe with this capacity.
    pub fn new(capacity: u64) -> History {
        History {
            capacity,
            in_force: capacity,
            queue: None,
            held: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            next: 0,
            newest: BTreeMap::new(),
            disregarded_znodes: BTreeSet::new(),
            disregarded_sessions: BTreeSet::new(),
            gone: BTreeSet::new(),
            disregarded_holds: BTreeSet::new(),
            void: BTreeSet::new(),
            store: None,
            guarded: None,
        }
    }

    /// The same history, which judges the order of the grants too.
    ///
    /// Report every contender that [enters](Self::came) the queue and [leaves](Self::went).
    #[must_use]
    pub fn ordered(mut self) -> History {
        self.queue = Some(BTreeMap::new());
        self
    }

    /// A contender of this weight has entered at the end of the queue.
    ///
    /// `token` is the `czxid` of its znode.
    pub fn came(&mut self, token: FencingToken, weight: u64) {
        if let Some(queue) = &mut self.queue {
            queue.insert(token, Queued { weight, room: None });
        }
        self.note_room();
    }

    /// A contender has left the queue, or is about to.
    pub fn went(&mut self, token: FencingToken) {
        if let Some(queue) = &mut self.queue {
            queue.remove(&token);
        }
        self.note_room();
    }

    /// The newest contender has replaced an earlier one, in the same place.
    pub fn replaced(&mut self, earlier: FencingToken, by: FencingToken) {
        if let Some(queue) = &mut self.queue {
            if let Some(successor) = queue.remove(&by) {
                queue.insert(earlier, successor);
            }
        }
        self.note_room();
    }

    /// From now on the capacity is this. It is never more than at first.
    pub fn resized(&mut self, capacity: u64) {
        self.in_force = capacity;
        self.note_room();
    }

    /// Notes for which contenders there is room.
    ///
    /// A contender judges by the contenders before it and by a capacity that it has read *after* it
    /// came. At some moment since, that capacity was in force. The contenders before it can only
    /// have become fewer. So there has been a moment at which they and it fitted in.
    fn note_room(&mut self) {
        let mut weight = 0;
        for contender in self.queue.iter_mut().flat_map(BTreeMap::values_mut) {
            weight += contender.weight;
            if weight > self.in_force {
                return;
            }
            contender.room = contender.room.max(Some(self.in_force));
        }
    }

    /// True if holds of these two weights must not overlap.
    pub fn excludes(&self, one: u64, other: u64) -> bool {
        one + other > self.capacity
    }

    /// True if a hold of this weight must not overlap with any other.
    pub fn is_exclusive(&self, weight: u64) -> bool {
        self.excludes(weight, 1)
    }

    /// The holds that are not released, each with its number.
    pub fn held(&self) -> impl Iterator<Item = (u64, &Held)> {
        self.held.iter().map(|(number, held)| (*number, held))
    }

    /// The hold of this number, unless it is released.
    pub fn holder(&self, number: u64) -> Option<&Held> {
        self.held.get(&number)
    }

    /// True if the hold is held now, and the history does not [disregard](Self::disregard_znode)
    /// it.
    pub fn is_certain(&self, hold: &HoldView) -> bool {
        hold.is_held() && !self.is_disregarded(hold)
    }

    /// True if the history ignores this hold.
    pub fn is_disregarded(&self, hold: &HoldView) -> bool {
        self.disregards(hold.node_path())
            || self.disregarded_sessions.contains(&hold.session_id())
            || self.is_gone(hold)
            || self.disregarded_holds.contains(&znode_of(hold))
    }

    /// From now on, the history ignores this hold, but no other hold of its znode's path.
    ///
    /// For a znode that the owner of an earlier one at the same path deletes, because the earlier one
    /// has [gone with the data of the servers](Self::lose) and its owner does not know it.
    pub fn disregard_hold(&mut self, path: &str, token: FencingToken, session: SessionId) {
        let znode = (path.to_owned(), token, session);
        self.disregarded_holds.insert(znode);
    }

    /// True if the hold's znode has [gone with the data of the servers](Self::lose).
    pub fn is_gone(&self, hold: &HoldView) -> bool {
        self.gone.contains(&znode_of(hold))
    }

    /// True if the history ignores holds of this znode.
    pub fn disregards(&self, path: &str) -> bool {
        self.disregarded_znodes.contains(path)
    }

    /// From now on, the history ignores holds of this znode.
    ///
    /// For a znode that the test deletes by hand: its holder cannot know that at once.
    pub fn disregard_znode(&mut self, path: &str) {
        self.disregarded_znodes.insert(path.to_owned());
    }

    /// From now on, the history ignores holds of this session.
    ///
    /// For a session that the test ends while its client is alive.
    pub fn disregard_session(&mut self, session: SessionId) {
        self.disregarded_sessions.insert(session);
    }

    /// The servers have lost data, and these znodes with it. The history starts over.
    ///
    /// Each znode is named by its path, its token and its session. From now on the history ignores holds
    /// of these znodes, even if they are granted later: their owners cannot know of the loss before
    /// they reach a server, so others can hold meanwhile. The holds whose znodes remain are checked as
    /// before. The store and the order of the tokens start over, because tokens can repeat.
    pub fn lose(&mut self, gone: impl IntoIterator<Item = (String, FencingToken, SessionId)>) {
        for (path, token, session) in gone {
            if let Some(queue) = &mut self.queue {
                queue.remove(&token);
            }
            self.gone.insert((path, token, session));
        }
        let remains = |held: &Held| {
            let lasts = held.hold.state().ended().is_none();
            lasts && !self.is_disregarded(&held.hold)
        };
        let remain = self.held.iter().filter(|(_, held)| remains(held));
        let remain: BTreeMap<u64, Granted> = remain
            .map(|(number, held)| (*number, Granted::by(held)))
            .collect();
        let numbers = 1..=self.next;
        self.void = numbers.filter(|it| !remain.contains_key(it)).collect();
        (self.store, self.guarded) = (None, None);
        self.newest.clear();
        for granted in remain.into_values() {
            self.note_newest(&granted);
        }
        self.note_room();
    }

    /// A hold begins now. The call returns its number and the broken promises.
    ///
    /// The history checks three promises:
    ///
    /// 1. The hold does not overlap with a hold that it excludes. A hold never returns from "lost"
    ///    to "held", so two holds overlap only if the earlier one is held when the later one
    ///    begins. This one check is enough.
    /// 2. Its token is newer than the token of every earlier hold that it excludes.
    /// 3. If the history is ordered, there was room for the hold in the queue.
    pub fn granted(&mut self, who: &str, weight: u64, hold: &HoldView) -> (u64, Vec<Violation>) {
        let new = Held {
            who: who.to_owned(),
            weight,
            hold: hold.clone(),
        };
        let violations = match self.is_certain(hold) {
            true => self.judge(&Granted::by(&new)),
            false => Vec::new(),
        };
        self.next += 1;
        if self.is_gone(hold) {
            self.void.insert(self.next);
        }
        self.held.insert(self.next, new);
        (self.next, violations)
    }

    /// As [`granted`](Self::granted), for a holder in another program.
    ///
    /// The history cannot ask the holder whether it holds, and takes the hold as held until the
    /// holder [releases](Self::letting_go). Any number that grows in the order of the queue serves
    /// as the token.
    pub fn granted_elsewhere(
        &mut self,
        who: &str,
        weight: u64,
        token: FencingToken,
        path: &str,
    ) -> (u64, Vec<Violation>) {
        let new = Granted {
            who: who.to_owned(),
            weight,
            token,
            path: path.to_owned(),
            view: None,
        };
        let violations = self.judge(&new);
        self.next += 1;
        self.elsewhere.insert(self.next, new);
        (self.next, violations)
    }

    fn judge(&mut self, new: &Granted) -> Vec<Violation> {
        let violations = [
            self.overlap_with(new),
            self.overtaking_by(new),
            self.newer_than(new),
        ];
        self.note_newest(new);
        violations.into_iter().flatten().collect()
    }

    fn note_newest(&mut self, new: &Granted) {
        let newest = self.newest.get(&new.weight);
        if newest.is_none_or(|newest| newest.token < new.token) {
            // It is kept for longer than the hold, and so is its view if there is one.
            let view = None;
            let newest = Granted {
                view,
                ..new.clone()
            };
            self.newest.insert(new.weight, newest);
        }
    }

    fn overlap_with(&self, new: &Granted) -> Option<Violation> {
        let held = self.held.values();
        let others = held.filter(|other| self.is_certain(&other.hold));
        let others = others.map(Granted::by);
        let others: Vec<Granted> = others.chain(self.elsewhere.values().cloned()).collect();
        let weight: u64 = others.iter().map(|other| other.weight).sum();
        if weight + new.weight <= self.capacity_for(&others, new) {
            return None;
        }
        let others: Vec<String> = others.iter().map(Granted::to_string).collect();
        Some(Violation {
            promise: "no more is held at a time than can be",
            text: format!("{new} held beside {}", others.join(" and ")),
        })
    }

    /// How much could be held when the last of them in the queue was let in. It came after all the
    /// others, so that they were counted. Later contenders are checked against later capacities.
    fn capacity_for(&self, others: &[Granted], new: &Granted) -> u64 {
        let tokens = others.iter().chain([new]).map(|held| held.token);
        let last = self.queue.as_ref().and_then(|queue| {
            let places = tokens.filter_map(|token| queue.get_key_value(&token));
            places.max_by_key(|(token, _)| **token)
        });
        last.and_then(|(_, last)| last.room)
            .unwrap_or(self.capacity)
    }

    fn overtaking_by(&self, new: &Granted) -> Option<Violation> {
        let queue = self.queue.as_ref()?;
        let token = new.token;
        if queue.get(&token).is_some_and(|own| own.room.is_some()) {
            return None;
        }
        let before: Vec<_> = queue.range(..token).collect();
        Some(Violation {
            promise: "first come, first served",
            text: format!("{new} held before {before:?}"),
        })
    }

    fn newer_than(&self, new: &Granted) -> Option<Violation> {
        let token = new.token;
        let (_, newer) = self
            .newest
            .iter()
            .filter(|(weight, _)| self.excludes(**weight, new.weight))
            // A hold that is replaced by one of another kind keeps its token.
            .find(|(weight, earlier)| {
                earlier.token > token || (earlier.token == token && **weight == new.weight)
            })?;
        Some(Violation {
            promise: "tokens grow with every grant",
            text: format!(
                "{new} held with token {token}, after {newer} with {}",
                newer.token
            ),
        })
    }

    /// The owner of a hold is about to release it.
    ///
    /// Call it before the release, and drop the returned value before the release.
    /// `None` if no [`HoldView`] of this number is held.
    pub fn letting_go(&mut self, number: u64) -> Option<Held> {
        self.elsewhere.remove(&number);
        self.held.remove(&number)
    }

    /// A write arrives at the store. The call returns whether the store accepts it, and a broken
    /// promise.
    ///
    /// The store keeps the newest token of the holds that exclude all others, and refuses older
    /// tokens, and those from before the servers [lost data](Self::lose). The promise is that the
    /// store refuses no holder.
    pub fn stored(
        &mut self,
        number: u64,
        weight: u64,
        token: FencingToken,
    ) -> (bool, Option<Violation>) {
        if self.void.contains(&number) {
            return (false, None);
        }
        if self.store.is_some_and(|newest| token < newest) {
            let violation = self.certain(number).map(|held| Violation {
                promise: "no holder's token is refused",
                text: format!("{held:?}, the store having seen {:?}", self.store),
            });
            return (false, violation);
        }
        if self.is_exclusive(weight) {
            self.store = Some(token);
        }
        (true, None)
    }

    /// The server has refused a [guarded write](HoldView::transaction), because the holder's znode
    /// was deleted. The promise is that the server refuses no holder.
    pub fn guarded_write_refused(&self, number: u64) -> Option<Violation> {
        self.certain(number).map(|held| Violation {
            promise: "no holder's guarded write is refused",
            text: format!("{held:?}"),
        })
    }

    /// The server has committed a [guarded write](HoldView::transaction).
    ///
    /// Call it in the order of the commits. The promise is that no hold that excludes all others has
    /// written with a newer token before.
    pub fn guarded_write_committed(
        &mut self,
        weight: u64,
        token: FencingToken,
    ) -> Option<Violation> {
        let before = self.guarded;
        if self.is_exclusive(weight) {
            self.guarded = before.max(Some(token));
        }
        let newer = before.filter(|before| token < *before)?;
        Some(Violation {
            promise: "guarded writes come in the order of their tokens",
            text: format!("token {token} after {newer}"),
        })
    }

    fn certain(&self, number: u64) -> Option<&Held> {
        let held = self.held.get(&number)?;
        self.is_certain(&held.hold).then_some(held)
    }
}
