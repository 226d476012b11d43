//! What the ensemble has committed, and what a look may show of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use zookeeper_recipes_core::SessionId;
use zookeeper_recipes_overview::{
    Circle, CircleWait, ContenderState, ContenderStatus, Overview, QueueKind, QueueStatus,
};
use zookeeper_recipes_simulation::{Change, Committed};
use zookeeper_recipes_suite::{ELECTION, LOCK, RWLOCK, SEMAPHORE, TestedRecipe};

use crate::findings::Findings;

pub(crate) const BASE: &str = "/recipe/overview";

pub(crate) const SEMAPHORE_PATH: &str = "/recipe/overview/2";

/// The queues that all contend for.
pub(crate) const QUEUES: [(&str, TestedRecipe); 5] = [
    ("/recipe/overview/0", LOCK),
    ("/recipe/overview/1", RWLOCK),
    (SEMAPHORE_PATH, SEMAPHORE),
    ("/recipe/overview/3", ELECTION),
    ("/recipe/overview/4/deep", LOCK),
];

const RING: &str = "/recipe/overview/ring/";

/// The lock that one of the sessions holds that wait for each other in the end.
pub(crate) fn ring(number: usize) -> String {
    format!("{RING}{number}")
}

fn recipe_at(path: &str) -> Option<TestedRecipe> {
    let mut queues = QUEUES.into_iter();
    let known = queues.find(|(queue, _)| *queue == path);
    known.map_or(path.starts_with(RING).then_some(LOCK), |(_, recipe)| {
        Some(recipe)
    })
}

/// A contender.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    name: String,
    /// The number at the end of its name. A znode has the number of the znode that it replaces.
    number: u32,
    czxid: i64,
    session: SessionId,
    weight: u64,
    /// False if the rule has never let it hold.
    may_have_held: bool,
}

/// A queue at one moment.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// How much can be held in all, if that is known, and the transaction that changed it last.
    capacity: Option<u64>,
    numbered_at: i64,
    /// In the order of their numbers.
    nodes: Vec<Node>,
}

impl Queue {
    /// True if the rule lets this contender hold: all recipes here are first in, first out.
    fn holds(&self, place: usize) -> bool {
        self.holds_of(place, self.capacity)
    }

    /// As [`holds`](Self::holds), if so much could be held in all.
    fn holds_of(&self, place: usize, capacity: Option<u64>) -> bool {
        let wanted: u64 = self.nodes[..=place].iter().map(|node| node.weight).sum();
        capacity.is_some_and(|capacity| wanted <= capacity)
    }

    /// True if the number was changed since, so that this contender may hold against the rule.
    fn is_older(&self, place: usize) -> bool {
        self.nodes[place].czxid < self.numbered_at
    }

    fn place_of(&self, shown: &ContenderStatus) -> Option<usize> {
        let is_it = |node: &Node| {
            (&node.name, node.session) == (&shown.name, shown.session_id)
                && node.czxid == shown.fencing_token.get()
        };
        self.nodes.iter().position(is_it)
    }

    /// True if a look at this moment shows these contenders in this way.
    ///
    /// Behind them, contenders may be missing that have come since the look began, when the queue was
    /// `first`, or have left by its end, when it was `last`.
    fn is_shown_as(&self, shown: &[ContenderStatus], first: &Queue, last: &Queue) -> bool {
        let stayed = |node: &Node| {
            let is_in = |queue: &Queue| queue.nodes.iter().any(|it| it.czxid == node.czxid);
            is_in(first) && is_in(last)
        };
        let agrees = |(place, it): (usize, &ContenderStatus)| {
            self.place_of(it) == Some(place) && self.is_in_state(place, &it.state, last)
        };
        let mut missing = self.nodes.iter().skip(shown.len());
        shown.iter().enumerate().all(agrees) && !missing.any(stayed)
    }

    /// True if a look can show this state. It may know the number that was set by its end, when the
    /// queue was `last`.
    fn is_in_state(&self, place: usize, state: &ContenderState, last: &Queue) -> bool {
        let node = &self.nodes[place];
        match state {
            ContenderState::Holds => {
                let holds = self.holds(place) || self.holds_of(place, last.capacity);
                holds || (self.is_older(place) && node.may_have_held)
            }
            ContenderState::WaitsFor(on) => {
                let is_before = on.iter().all(|on| *on < place);
                let wants_too_much = self.capacity < Some(node.weight);
                let names_some = is_before && on.is_empty() == wants_too_much;
                !self.holds(place) && !self.is_older(place) && names_some
            }
            ContenderState::Unknown => {
                let is_known = self.capacity.is_some() && last.capacity.is_some();
                !is_known || node.czxid < self.numbered_at.max(last.numbered_at)
            }
        }
    }

    /// True if the waiter waits here, and the blocker is before it.
    fn has(&self, wait: &CircleWait) -> bool {
        let (waiter, blocker) = (self.place_of(&wait.waiter), self.place_of(&wait.blocker));
        waiter.is_some_and(|waiter| !self.holds(waiter) && blocker < Some(waiter))
            && blocker.is_some()
    }
}

/// What the ensemble has committed.
#[derive(Debug, Default)]
pub(crate) struct Referee {
    /// When each transaction was committed.
    commits: Vec<Duration>,
    last: i64,
    /// The states of each queue, each with the place of the transaction that led to it.
    queues: BTreeMap<String, Vec<(usize, Queue)>>,
    /// When the servers came back with other data.
    replaced: Vec<Duration>,
}

impl Referee {
    /// Takes in what was committed.
    pub(crate) fn committed(&mut self, committed: &Committed) {
        if self.commits.is_empty() || self.last != committed.zxid {
            self.last = committed.zxid;
            self.commits.push(committed.at);
        }
        self.changed(committed);
    }

    fn changed(&mut self, committed: &Committed) {
        match &committed.change {
            Change::Created {
                path,
                ephemeral_owner,
                data,
            } => self.created(path, *ephemeral_owner, data, committed.zxid),
            Change::Deleted { path } => self.deleted(path),
            Change::DataSet { path, data } => self.numbered(path, data, committed.zxid),
            Change::DataReplaced { data } => {
                self.replaced.push(committed.at);
                let paths: Vec<String> = self.queues.keys().cloned().collect();
                for path in paths {
                    self.change(&path, |queue| *queue = Queue::default());
                }
                for committed in data {
                    self.changed(committed);
                }
            }
            Change::SessionOpened { .. } | Change::SessionEnded { .. } => {}
        }
    }

    /// How much can be held in all at this path, if that is recorded.
    pub(crate) fn capacity(&self, path: &str) -> Option<u64> {
        self.queues.get(path)?.last()?.1.capacity
    }

    fn created(&mut self, path: &str, owner: Option<SessionId>, data: &[u8], zxid: i64) {
        self.numbered(path, data, zxid);
        let Some((directory, name)) = path.rsplit_once('/') else {
            return;
        };
        let recipe = recipe_at(directory);
        let weight = recipe.and_then(|recipe| recipe.weight_of(name));
        let digits = name.get(name.len().saturating_sub(10)..);
        let number = digits.and_then(|digits| digits.parse().ok());
        if let (Some(weight), Some(session), Some(number)) = (weight, owner, number) {
            let node = Node {
                name: name.to_owned(),
                number,
                czxid: zxid,
                session,
                weight,
                may_have_held: false,
            };
            self.change(directory, |queue| queue.nodes.push(node));
        }
    }

    fn deleted(&mut self, path: &str) {
        let Some((directory, name)) = path.rsplit_once('/') else {
            return;
        };
        if recipe_at(path).is_some() {
            self.change(path, |queue| *queue = Queue::default());
        }
        if recipe_at(directory).is_none() {
            return;
        }
        self.change(directory, |queue| {
            queue.nodes.retain(|node| node.name != name)
        });
    }

    fn numbered(&mut self, path: &str, data: &[u8], zxid: i64) {
        let Some(recipe) = recipe_at(path) else {
            return;
        };
        let number = std::str::from_utf8(data)
            .ok()
            .and_then(|data| data.parse().ok());
        let (capacity, at) = match recipe.resizes {
            true => (number, zxid),
            false => (Some(recipe.capacity), 0),
        };
        self.change(path, |queue| {
            (queue.capacity, queue.numbered_at) = (capacity, at)
        });
    }

    fn change(&mut self, path: &str, change: impl FnOnce(&mut Queue)) {
        let now = self.commits.len().saturating_sub(1);
        let states = self.queues.entry(path.to_owned()).or_default();
        let (at, mut queue) = states.last().cloned().unwrap_or_default();
        if at == now {
            states.pop();
        }
        change(&mut queue);
        queue.nodes.sort_unstable_by_key(|node| node.number);
        for place in 0..queue.nodes.len() {
            queue.nodes[place].may_have_held |= queue.holds(place);
        }
        states.push((now, queue));
    }

    /// What is wrong with a look of this time.
    pub(crate) fn judge(&self, time: RangeInclusive<Duration>, overview: &Overview) -> Findings {
        let before = |time: Duration| self.commits.partition_point(|at| *at < time);
        let until = self.commits.partition_point(|at| at <= time.end());
        let Some(last) = until.checked_sub(1) else {
            return Findings::new();
        };
        if self.replaced.iter().any(|at| time.contains(at)) {
            return Findings::new();
        }
        let look = Look {
            referee: self,
            window: before(*time.start()).saturating_sub(1)..=last,
            overview,
        };
        let mut findings = Findings::new();
        let shown = overview.queues().iter().map(|queue| queue.path());
        let shown = shown.filter(|path| path.starts_with(BASE));
        let paths: BTreeSet<&str> = self
            .queues
            .keys()
            .map(String::as_str)
            .chain(shown)
            .collect();
        findings.extend(paths.into_iter().filter_map(|path| look.at_queue(path)));
        let circles = overview.circles().iter();
        findings.extend(circles.filter_map(|circle| look.at_circle(circle)));
        findings.extend(look.missed());
        findings
    }
}

/// A session waits for the holder of a lock, behind these sessions.
struct Wait<'a> {
    path: &'a str,
    holder: SessionId,
    before: BTreeSet<SessionId>,
}

/// A look, and the transactions of its time.
struct Look<'a> {
    referee: &'a Referee,
    window: RangeInclusive<usize>,
    overview: &'a Overview,
}

impl Look<'_> {
    /// The states of a queue while the look lasted, each with the transactions that left it so.
    fn states(&self, path: &str) -> Vec<(RangeInclusive<usize>, Queue)> {
        let states = self.referee.queues.get(path).map_or(&[][..], Vec::as_slice);
        let ends = states.iter().skip(1).map(|(next, _)| *next);
        let ends = ends.chain([usize::MAX]);
        let states = states.iter().zip(ends);
        let states = states.filter_map(|((from, queue), next)| {
            let (from, to) = (
                *from.max(self.window.start()),
                (next - 1).min(*self.window.end()),
            );
            (from <= to).then(|| (from..=to, queue.clone()))
        });
        let mut states: Vec<_> = states.collect();
        if states
            .first()
            .is_none_or(|(at, _)| at.start() > self.window.start())
        {
            states.insert(
                0,
                (
                    *self.window.start()..=*self.window.start(),
                    Queue::default(),
                ),
            );
        }
        states
    }

    fn at_queue(&self, path: &str) -> Option<(&'static str, String)> {
        let shown = self.overview.queue(path);
        let kind = recipe_at(path).map(|recipe| match recipe.name {
            "rwlock" => QueueKind::ReadWriteLock,
            "semaphore" => QueueKind::Semaphore,
            "election" => QueueKind::Election,
            _ => QueueKind::Lock,
        });
        if shown.is_some_and(|shown| Some(shown.kind()) != kind) {
            return Some(("a look knows the recipe of a queue", format!("{shown:?}")));
        }
        let shown: Vec<_> = shown
            .into_iter()
            .flat_map(QueueStatus::contenders)
            .collect();
        let states = self.states(path);
        let (first, last) = (&states[0].1, &states[states.len() - 1].1);
        let is_shown = |(_, queue): &(_, Queue)| queue.is_shown_as(&shown, first, last);
        let promise = "a look shows each queue as it was at a moment of the look";
        let text = || format!("{path}: {shown:?}, but there were {states:?}");
        (!states.iter().any(is_shown)).then(|| (promise, text()))
    }

    fn at_circle(&self, circle: &Circle) -> Option<(&'static str, String)> {
        let mut moments: BTreeSet<usize> = self.window.clone().collect();
        for wait in &circle.waits {
            let states = self.states(&wait.path);
            let there = states.into_iter().filter(|(_, queue)| queue.has(wait));
            let there: BTreeSet<usize> = there.flat_map(|(at, _)| at).collect();
            moments.retain(|at| there.contains(at));
        }
        let next = circle.waits.iter().cycle().skip(1);
        let mut pairs = circle.waits.iter().zip(next);
        let is_closed = pairs.all(|(one, next)| one.blocker.session_id == next.waiter.session_id);
        let promise = "the waits of a circle exist at one moment of the look";
        (moments.is_empty() || !is_closed).then(|| (promise, format!("{circle:?}")))
    }

    /// A deadlock over locks that the look should have shown.
    fn missed(&self) -> Option<(&'static str, String)> {
        // Of the locks in which nothing happened: who waits for the holder, behind whom.
        let mut waits: BTreeMap<SessionId, Vec<Wait<'_>>> = BTreeMap::new();
        for path in self.referee.queues.keys() {
            let states = self.states(path);
            let [(_, queue)] = states.as_slice() else {
                continue;
            };
            let is_lock = queue.capacity == Some(1) && queue.numbered_at == 0;
            let Some(holder) = queue.nodes.first().filter(|_| is_lock) else {
                continue;
            };
            for (place, node) in queue.nodes.iter().enumerate() {
                if node.session != holder.session {
                    let before = queue.nodes[..place]
                        .iter()
                        .map(|node| node.session)
                        .collect();
                    waits.entry(node.session).or_default().push(Wait {
                        path,
                        holder: holder.session,
                        before,
                    });
                }
            }
        }
        let shown = self
            .overview
            .circles()
            .iter()
            .flat_map(|circle| &circle.waits);
        let shown: BTreeSet<_> = shown.map(|wait| wait.waiter.session_id).collect();
        // From each session on, the ways that lead back to it.
        for start in waits.keys() {
            let mut ways = vec![(*start, Vec::<&str>::new(), BTreeSet::new())];
            while let Some((session, paths, met)) = ways.pop() {
                if session == *start && paths.len() > 1 && paths.first() != paths.last() {
                    if met.is_disjoint(&shown) {
                        let text = format!("{start} waits for itself over {paths:?}");
                        return Some(("a look shows a deadlock of locks", text));
                    }
                    continue;
                }
                for wait in waits.get(&session).into_iter().flatten() {
                    if paths.len() < 4 && !paths.contains(&wait.path) {
                        let paths = paths.iter().copied().chain([wait.path]).collect();
                        ways.push((wait.holder, paths, &met | &wait.before));
                    }
                }
            }
        }
        None
    }
}
