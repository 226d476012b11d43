//! The plans of all workers, as the leader should write them: a pure function of the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::balance::{Candidate, Place, Target, target};
use crate::patience::{Aside, Fault, Late, Patience, Progress, UnderWay};
use crate::pieces::Lines;
use crate::plan::{Numbers, PlannedPartition, PlannedWorker};

/// The worker should own the partition.
pub(crate) const OWN: &str = "own";
/// The worker should own the partition no longer, once the next owner waits behind it.
pub(crate) const GIVE: &str = "give";

/// What the leader knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) input: Input,
    /// The present plan of each worker.
    pub(crate) plans: BTreeMap<String, WorkerPlan>,
    /// Who owns each partition, and by which token.
    pub(crate) owned: BTreeMap<String, (String, i64)>,
    /// The token of each member.
    pub(crate) tokens: BTreeMap<String, i64>,
    pub(crate) max_moves: usize,
    /// How long a move may take.
    pub(crate) move_within: Duration,
}

/// What the target follows from, beside where the partitions are and who is set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) partitions: Arc<BTreeMap<String, PlannedPartition>>,
    /// The members of the group.
    pub(crate) workers: BTreeMap<String, PlannedWorker>,
    /// The workers that have vanished and keep their partitions for a grace.
    pub(crate) awaited: BTreeSet<String>,
    /// The worker that each pinned partition should be with.
    pub(crate) pins: BTreeMap<String, String>,
    pub(crate) frozen: bool,
}

/// What the leader should write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// The plan of each worker that has one.
    pub(crate) plans: BTreeMap<String, WorkerPlan>,
    /// The partitions that get another worker by this plan.
    pub(crate) moves: Vec<Move>,
    /// The moves that wait, because enough partitions move already.
    pub(crate) deferred: usize,
    /// The partitions that a worker should own and does not own yet.
    pub(crate) unsettled: usize,
    /// The moves that have taken too long.
    pub(crate) late: Vec<Late>,
    /// When the next move has taken too long, or the first grace ends.
    pub(crate) ends: Option<Instant>,
    /// The workers that are set aside no more.
    pub(crate) back: Vec<String>,
}

/// The plan of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerPlan {
    /// Why the worker is set aside, or the empty text.
    pub(crate) note: String,
    pub(crate) lines: Lines,
}

/// A partition that gets another worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) partition: String,
    pub(crate) from: Option<String>,
    pub(crate) to: String,
    pub(crate) reason: Reason,
}

/// Why a partition gets another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// No worker of the plan is there.
    Unowned,
    /// An operator has pinned the partition.
    Pinned,
    /// An operator drains its worker.
    Drained,
    Balance,
}

impl Reason {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Reason::Unowned => "unowned",
            Reason::Pinned => "pinned",
            Reason::Drained => "drained",
            Reason::Balance => "balance",
        }
    }
}

/// The target that a leader works towards. It stays until what it follows from changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Goal {
    input: Input,
    aside: BTreeMap<String, Aside>,
    target: Target,
    /// When each partition moves: the place in the order of the steps.
    turns: Vec<u32>,
}

/// A partition, as a look at the state finds it. Workers are numbers.
#[derive(Debug, Default)]
struct Found {
    /// Who owns it, and by which token.
    owner: Option<(Place, i64)>,
    /// The workers whose plans name it, and whether as the owner.
    named: Vec<(Place, bool)>,
    /// The worker that it is planned with, of those that are there or are awaited.
    present: Option<Place>,
}

/// A look at the state. The members of the group have the first numbers, and then the awaited.
pub(crate) struct Look<'a> {
    view: &'a View,
    workers: Vec<&'a str>,
    members: Place,
    found: Vec<Found>,
    /// The members that are set aside.
    aside: BTreeMap<Place, Fault>,
}

impl Goal {
    /// Computes the target anew if what it follows from has changed.
    pub(crate) fn follow(&mut self, look: &Look<'_>, patience: &Patience) {
        let is_same = self.input == look.view.input && self.aside == *patience.aside();
        if is_same && !self.turns.is_empty() && !look.lacks_a_trial(&self.target) {
            return;
        }
        self.input = look.view.input.clone();
        self.aside = patience.aside().clone();
        self.target = look.target();
        self.turns = vec![u32::MAX; look.found.len()];
        for (turn, step) in (0..).zip(&self.target.steps) {
            self.turns[*step as usize] = turn;
        }
    }
}

impl<'a> Look<'a> {
    pub(crate) fn new(view: &'a View) -> Look<'a> {
        // The numbers of the target are those of its input.
        let mut workers: Vec<&str> = view.input.workers.keys().map(String::as_str).collect();
        let members = workers.len() as Place;
        workers.extend(view.input.awaited.iter().map(String::as_str));
        let mut numbers = Numbers::new(workers.iter().copied());
        let partitions = Numbers::new(view.input.partitions.keys().map(String::as_str));
        let mut found: Vec<Found> = Vec::new();
        found.resize_with(view.input.partitions.len(), Found::default);
        let mut number = |worker: &'a str| {
            let number = numbers.add(worker);
            if number as usize == workers.len() {
                workers.push(worker);
            }
            number
        };
        for (worker, plan) in &view.plans {
            let worker = number(worker);
            for (partition, word) in &plan.lines {
                if let Some(partition) = partitions.get(partition) {
                    found[partition as usize].named.push((worker, word == OWN));
                }
            }
        }
        for (partition, (worker, token)) in &view.owned {
            if let Some(partition) = partitions.get(partition) {
                found[partition as usize].owner = Some((number(worker), *token));
            }
        }
        let mut look = Look {
            view,
            workers,
            members,
            found,
            aside: BTreeMap::new(),
        };
        for partition in 0..look.found.len() {
            look.found[partition].present = look.present(&look.found[partition]);
        }
        look
    }

    fn is_there(&self, worker: Place) -> bool {
        worker < self.members
    }

    /// The worker that the partition is planned with, of those that are there or are awaited.
    fn present(&self, found: &Found) -> Option<Place> {
        let counts = |worker: &Place| {
            self.is_there(*worker)
                || self
                    .view
                    .input
                    .awaited
                    .contains(self.workers[*worker as usize])
        };
        let owner = found.owner.map(|(worker, _)| worker);
        let owns = found.named.iter().filter(|(_, owns)| *owns);
        let mut planned = owns.map(|(worker, _)| *worker).filter(counts);
        // Two workers are planned if a leader has died between two writes.
        let first = planned.clone().next();
        let planned = planned.find(|it| Some(*it) == owner).or(first);
        // A worker that has vanished before the end of a move is not awaited: its partition has an
        // owner, which keeps it.
        let owner = owner.filter(|it| self.is_there(*it));
        planned
            .filter(|it| self.is_there(*it))
            .or(owner)
            .or(planned)
    }

    /// The partitions that are planned with another worker than owns them: a member, or one that is
    /// awaited.
    pub(crate) fn under_way(&self) -> Vec<UnderWay<'a>> {
        let names = self.view.input.partitions.keys();
        let moves = names.zip(&self.found).filter_map(|(partition, found)| {
            let to = found.present?;
            let owner = found.owner.map(|(worker, _)| worker);
            (owner != Some(to)).then(|| UnderWay {
                partition,
                owner: owner.map(|it| self.workers[it as usize]),
                to: self.workers[to as usize],
            })
        });
        moves.collect()
    }

    pub(crate) fn progress(&self) -> BTreeMap<&'a str, Progress> {
        let member = |worker: &&'a str| {
            let member = self.view.tokens.get(*worker).copied();
            let progress = Progress {
                member: member.unwrap_or_default(),
                newest: 0,
            };
            (*worker, progress)
        };
        let members = self.workers[..self.members as usize].iter();
        let mut progress: BTreeMap<&str, Progress> = members.map(member).collect();
        for (worker, token) in self.found.iter().filter_map(|found| found.owner) {
            if let Some(progress) = progress.get_mut(self.workers[worker as usize]) {
                progress.newest = progress.newest.max(token);
            }
        }
        progress
    }

    /// Notes who is set aside. Nobody is, if nobody else may get partitions.
    pub(crate) fn set_aside(&mut self, patience: &Patience) {
        let names = self.view.input.workers.keys().zip(0..);
        let aside = names.filter_map(|(name, place)| {
            let aside = patience.aside().get(name)?;
            Some((place, aside.fault))
        });
        let aside: BTreeMap<Place, Fault> = aside.collect();
        let mut workers = self.view.input.workers.values().zip(0..);
        if workers.any(|(worker, place)| !worker.drained && !aside.contains_key(&place)) {
            self.aside = aside;
        }
    }

    fn is_aside(&self, worker: Option<Place>) -> bool {
        worker.is_some_and(|worker| self.aside.contains_key(&worker))
    }

    /// The one partition that each worker which took none may take, to show progress. Its owner is
    /// there, and keeps it until then.
    fn trials(&self) -> BTreeMap<u32, Place> {
        let mut trials: BTreeMap<Place, u32> = BTreeMap::new();
        let takes_none = |place: &Place| self.aside.get(place) == Some(&Fault::TakesNone);
        for (number, found) in (0..).zip(&self.found) {
            let to = found.present.filter(takes_none);
            if let Some(to) = to.filter(|to| self.lends(found, *to)) {
                trials.entry(to).or_insert(number);
            }
        }
        for place in self.aside.keys().copied().filter(takes_none) {
            if !trials.contains_key(&place) {
                let trial = self.new_trial(place, &trials);
                trials.extend(trial.map(|number| (place, number)));
            }
        }
        let by_partition = trials.into_iter();
        by_partition
            .map(|(place, number)| (number, place))
            .collect()
    }

    /// Any partition, rather than that the worker is never tried. Preferably one that may stay.
    fn new_trial(&self, place: Place, trials: &BTreeMap<Place, u32>) -> Option<u32> {
        let worker = self.worker(place).filter(|worker| !worker.drained)?;
        let about = self.view.input.partitions.iter();
        let others = about.zip(&self.found).zip(0..);
        let settled = others.filter(|((_, found), number)| {
            let is_settled = found.present == found.owner.map(|(owner, _)| owner);
            let is_tried = trials.values().any(|it| it == number);
            !self.view.input.frozen && is_settled && !is_tried && self.lends(found, place)
        });
        let (_, number) = settled.min_by_key(|(((name, about), _), _)| {
            let is_in_zone = about.zone.is_none() || about.zone == worker.zone;
            match self.view.input.pins.get(*name) {
                Some(pin) => (*pin != self.workers[place as usize], false),
                None => (!is_in_zone, true),
            }
        })?;
        Some(number)
    }

    /// True if a worker that took none has no partition to take, and now there is one.
    fn lacks_a_trial(&self, target: &Target) -> bool {
        let mut aside = self.aside.iter();
        aside.any(|(place, fault)| {
            let mut places = target.places.iter().zip(&self.found);
            let is_tried = |(to, found): (&Option<Place>, &Found)| {
                *to == Some(*place) && found.owner.is_none_or(|(owner, _)| owner != *place)
            };
            *fault == Fault::TakesNone
                && !places.any(is_tried)
                && self.new_trial(*place, &BTreeMap::new()).is_some()
        })
    }

    /// True if the owner of the partition keeps it until the other worker takes it.
    fn lends(&self, found: &Found, to: Place) -> bool {
        let owner = found.owner.map(|(owner, _)| owner);
        let owner = owner.filter(|it| *it != to && !self.is_aside(Some(*it)));
        owner
            .and_then(|it| self.worker(it))
            .is_some_and(|it| !it.drained)
    }

    fn worker(&self, place: Place) -> Option<&'a PlannedWorker> {
        self.view.input.workers.get(self.workers[place as usize])
    }

    /// Where the balance takes a partition to be.
    fn place(&self, number: u32, trials: &BTreeMap<u32, Place>) -> Option<Place> {
        let found = &self.found[number as usize];
        let owner = found.owner.map(|(owner, _)| owner);
        if let Some(trial) = trials.get(&number) {
            return Some(*trial);
        }
        match found.present {
            // What it should take and does not goes back or elsewhere.
            Some(to) if self.is_aside(Some(to)) && owner != Some(to) => {
                owner.filter(|it| self.is_there(*it))
            }
            present => present,
        }
    }

    /// The worker that each partition should be with in the end. A partition of an awaited worker
    /// stays with it.
    fn target(&self) -> Target {
        let mut zones = Numbers::default();
        let workers = self.view.input.workers.values().zip(0..);
        let candidates = workers.map(|(worker, place)| Candidate {
            takes: !worker.drained && !self.aside.contains_key(&place),
            ..worker.candidate(&mut zones)
        });
        let candidates: Vec<Candidate> = candidates.collect();
        let trials = self.trials();
        let members = Numbers::new(self.workers[..self.members as usize].iter().copied());
        let (mut items, mut numbers) = (Vec::new(), Vec::new());
        for (number, (name, about)) in (0_u32..).zip(&*self.view.input.partitions) {
            let Found { owner, present, .. } = &self.found[number as usize];
            if present.is_some_and(|it| !self.is_there(it)) {
                continue;
            }
            // Of a worker's partitions, one that it does not own yet moves first, and then the one
            // that it has owned for the shortest time. So a worker that comes back gets what it had.
            let token = owner.filter(|(owner, _)| Some(*owner) == *present);
            let rank = token.map_or(u64::MAX, |(_, token)| token.unsigned_abs());
            let pin = self
                .view
                .input
                .pins
                .get(name)
                .and_then(|it| members.get(it));
            let at = self.place(number, &trials);
            items.push(about.item(&mut zones, pin, at, rank));
            numbers.push(number);
        }
        let target = target(&candidates, &items, self.view.input.frozen);
        let mut places: Vec<_> = self.found.iter().map(|found| found.present).collect();
        for (number, place) in numbers.iter().zip(target.places) {
            places[*number as usize] = place;
        }
        let steps = target.steps.iter().map(|step| numbers[*step as usize]);
        Target {
            places,
            steps: steps.collect(),
        }
    }

    /// True if the partition is on its way to the worker that it is planned with.
    fn is_moving(&self, found: &Found) -> bool {
        let owner = found.owner.map(|(worker, _)| worker);
        let is_given = found.named.iter().any(|(_, owns)| !owns);
        found.present.is_some() && owner != found.present && (owner.is_some() || is_given)
    }

    pub(crate) fn next(&self, goal: &Goal, patience: &Patience, at_once: usize) -> Next {
        let mut next = Next::default();
        let names: Vec<&String> = self.view.input.partitions.keys().collect();
        for member in &self.workers[..self.members as usize] {
            let aside = patience.aside().get(*member);
            let note = aside.map(Aside::note).unwrap_or_default();
            let lines = Lines::new();
            next.plans
                .insert((*member).to_owned(), WorkerPlan { note, lines });
        }
        let mut waiting: Vec<(u32, u32)> = Vec::new();
        let mut under_way = 0;
        for (number, found) in self.found.iter().enumerate() {
            let is_moving = self.is_moving(found);
            let owner = found.owner.map(|(owner, _)| owner);
            let is_aside = self.is_aside(found.present) || self.is_aside(owner);
            let counts = is_moving && !is_aside && !patience.is_stuck(names[number]);
            under_way += usize::from(counts);
            let target = goal.target.places[number];
            // A partition that is planned with a worker that has come back may have none.
            let Some(to) = target.or(found.present) else {
                continue;
            };
            // A move that is under way gets another end at once. A trial waits for no other move.
            let waits = owner.is_some() && !is_moving && !self.is_aside(Some(to));
            if found.present != Some(to) && waits {
                waiting.push((goal.turns[number], number as u32));
                continue;
            }
            if found.present != Some(to) {
                next.moves.push(self.moved(names[number], found, to));
            }
            self.own(&mut next, names[number], found, to);
        }
        waiting.sort_unstable();
        let mut room = at_once.saturating_sub(under_way);
        for (_, number) in waiting {
            let (name, found) = (names[number as usize], &self.found[number as usize]);
            // A worker that gives none is not asked for more.
            let begins = room > 0 && !self.is_aside(found.owner.map(|(owner, _)| owner));
            let to = goal.target.places[number as usize].filter(|_| begins);
            if to.is_none() {
                next.deferred += 1;
            }
            if let Some(to) = to {
                room -= 1;
                next.moves.push(self.moved(name, found, to));
            }
            if let Some(to) = to.or(found.present) {
                self.own(&mut next, name, found, to);
            }
        }
        next
    }

    /// Plans a worker as the owner, and each other worker that may own the partition as its giver.
    fn own(&self, next: &mut Next, partition: &str, found: &Found, to: Place) {
        let mut line = |worker: Place, word: &str| {
            let worker = self.workers[worker as usize];
            let plan = match next.plans.get_mut(worker) {
                Some(plan) => plan,
                None => next.plans.entry(worker.to_owned()).or_default(),
            };
            plan.lines.insert(partition.to_owned(), word.to_owned());
        };
        line(to, OWN);
        let owner = found.owner.map(|(worker, _)| worker);
        if owner == Some(to) {
            return;
        }
        let others = found.named.iter().map(|(worker, _)| *worker).chain(owner);
        for other in others.filter(|it| *it != to && self.is_there(*it)) {
            line(other, GIVE);
        }
        next.unsettled += 1;
    }

    fn moved(&self, partition: &str, found: &Found, to: Place) -> Move {
        let name = |worker: Place| self.workers[worker as usize].to_owned();
        let from = found.present.map(name);
        let to = name(to);
        Move {
            reason: self.reason(partition, from.as_ref(), &to),
            partition: partition.to_owned(),
            from,
            to,
        }
    }

    fn reason(&self, partition: &str, from: Option<&String>, to: &String) -> Reason {
        let worker = from.and_then(|from| self.view.input.workers.get(from));
        match worker {
            _ if self.view.input.pins.get(partition) == Some(to) => Reason::Pinned,
            None => Reason::Unowned,
            Some(worker) if worker.drained => Reason::Drained,
            Some(_) => Reason::Balance,
        }
    }
}
