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
    /// A word for the event and for the metric.
    pub(crate) reason: &'static str,
}

/// The target that a leader works towards. It stays until what it follows from changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Goal {
    input: Input,
    aside: BTreeMap<String, Aside>,
    trials: BTreeMap<u32, Place>,
    target: Target,
    /// When each partition moves: the place in the order of the steps.
    turns: Vec<u32>,
}

/// A partition, as a look at the state finds it. Workers are numbers.
#[derive(Debug, Default)]
struct Found {
    owner: Option<Place>,
    /// The token of its owner.
    token: i64,
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
    /// The one partition that each worker which took none may take, to show progress.
    trials: BTreeMap<u32, Place>,
}

impl Goal {
    /// Computes the target anew if what it follows from has changed.
    pub(crate) fn follow(&mut self, look: &Look<'_>, patience: &Patience) {
        let is_same = self.input == look.view.input && self.aside == *patience.aside();
        if is_same && self.trials == look.trials && !self.turns.is_empty() {
            return;
        }
        self.input = look.view.input.clone();
        self.aside = patience.aside().clone();
        self.trials = look.trials.clone();
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
                let found = &mut found[partition as usize];
                (found.owner, found.token) = (Some(number(worker)), *token);
            }
        }
        let mut look = Look {
            view,
            workers,
            members,
            found,
            aside: BTreeMap::new(),
            trials: BTreeMap::new(),
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
        let awaited = &self.view.input.awaited;
        let counts = |worker: &Place| {
            self.is_there(*worker) || awaited.contains(self.workers[*worker as usize])
        };
        let owns = found.named.iter().filter(|(_, owns)| *owns);
        let mut planned = owns.map(|(worker, _)| *worker).filter(counts);
        // Two workers are planned if a leader has died between two writes.
        let first = planned.clone().next();
        let planned = planned.find(|it| Some(*it) == found.owner).or(first);
        // A worker that has vanished before the end of a move is not awaited: its partition has an
        // owner, which keeps it.
        let owner = found.owner.filter(|it| self.is_there(*it));
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
            (found.owner != Some(to)).then(|| UnderWay {
                partition,
                owner: found.owner.map(|it| self.workers[it as usize]),
                to: self.workers[to as usize],
            })
        });
        moves.collect()
    }

    pub(crate) fn progress(&self) -> BTreeMap<&'a str, Progress> {
        let mut progress: BTreeMap<&str, Progress> = BTreeMap::new();
        for member in &self.workers[..self.members as usize] {
            let token = self.view.tokens.get(*member).copied();
            progress.entry(member).or_default().member = token.unwrap_or_default();
        }
        for found in &self.found {
            let owner = found.owner.map(|it| self.workers[it as usize]);
            if let Some(progress) = owner.and_then(|owner| progress.get_mut(owner)) {
                progress.newest = progress.newest.max(found.token);
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
        let takes_none = self.aside.iter().filter(|it| *it.1 == Fault::TakesNone);
        for (place, _) in takes_none {
            let trial = self.trial(*place);
            self.trials.extend(trial.map(|number| (number, *place)));
        }
    }

    fn is_aside(&self, worker: Option<Place>) -> bool {
        worker.is_some_and(|worker| self.aside.contains_key(&worker))
    }

    /// The partition that a worker may take to show progress: one that it is planned with, or any
    /// other, preferably one that may stay. Its owner is there, and keeps it until then.
    fn trial(&self, place: Place) -> Option<u32> {
        let about = self.view.input.partitions.iter();
        let may_try = about.zip(&self.found).zip(0_u32..);
        let may_try = may_try.filter_map(|(((name, about), found), number)| {
            let lends = self.lends(found, place) && !self.trials.contains_key(&number);
            let rank = self.rank_of_trial(place, name, about, found);
            Some((rank.filter(|_| lends)?, number))
        });
        may_try.min().map(|(_, number)| number)
    }

    fn rank_of_trial(
        &self,
        place: Place,
        name: &str,
        about: &PlannedPartition,
        found: &Found,
    ) -> Option<(bool, bool, bool)> {
        if found.present == Some(place) {
            return Some((false, false, false));
        }
        let worker = self.worker(place).filter(|worker| !worker.drained)?;
        let is_in_zone = about.zone.is_none() || about.zone == worker.zone;
        let rank = match self.view.input.pins.get(name) {
            Some(pin) => (true, *pin != self.workers[place as usize], false),
            None => (true, !is_in_zone, true),
        };
        let is_settled = found.present == found.owner;
        (is_settled && !self.view.input.frozen).then_some(rank)
    }

    /// True if the owner of the partition keeps it until the other worker takes it.
    fn lends(&self, found: &Found, to: Place) -> bool {
        found.owner.is_some_and(|owner| {
            let worker = self.worker(owner);
            owner != to && !self.is_aside(Some(owner)) && worker.is_some_and(|it| !it.drained)
        })
    }

    fn worker(&self, place: Place) -> Option<&'a PlannedWorker> {
        self.view.input.workers.get(self.workers[place as usize])
    }

    /// Where the balance takes a partition to be.
    fn place(&self, number: u32) -> Option<Place> {
        let found = &self.found[number as usize];
        match found.present {
            _ if self.trials.contains_key(&number) => self.trials.get(&number).copied(),
            // What it should take and does not goes back or elsewhere.
            to if self.is_aside(to) && found.owner != to => {
                found.owner.filter(|it| self.is_there(*it))
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
        let members = Numbers::new(self.workers[..self.members as usize].iter().copied());
        let (mut items, mut numbers) = (Vec::new(), Vec::new());
        for (number, (name, about)) in (0_u32..).zip(&*self.view.input.partitions) {
            let found = &self.found[number as usize];
            if found.present.is_some_and(|it| !self.is_there(it)) {
                continue;
            }
            // Of a worker's partitions, one that it does not own yet moves first, and then the one
            // that it has owned for the shortest time. So a worker that comes back gets what it had.
            let rank = match found.owner.is_some() && found.owner == found.present {
                true => found.token.unsigned_abs(),
                false => u64::MAX,
            };
            let pin = self.view.input.pins.get(name);
            let pin = pin.and_then(|it| members.get(it));
            items.push(about.item(&mut zones, pin, self.place(number), rank));
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
        let is_given = found.named.iter().any(|(_, owns)| !owns);
        let begins = found.owner.is_some() || is_given;
        found.present.is_some() && found.owner != found.present && begins
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
            let is_aside = self.is_aside(found.present) || self.is_aside(found.owner);
            let counts = is_moving && !is_aside && !patience.is_stuck(names[number]);
            under_way += usize::from(counts);
            let target = goal.target.places[number];
            // A partition that is planned with a worker that has come back may have none.
            let Some(to) = target.or(found.present) else {
                continue;
            };
            // A move that is under way gets another end at once. A trial waits for no other move.
            let waits = found.owner.is_some() && !is_moving && !self.is_aside(Some(to));
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
            let begins = room > 0 && !self.is_aside(found.owner);
            let to = goal.target.places[number as usize].filter(|_| begins);
            match to {
                Some(to) => {
                    room -= 1;
                    next.moves.push(self.moved(name, found, to));
                }
                None => next.deferred += 1,
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
        if found.owner == Some(to) {
            return;
        }
        let named = found.named.iter().map(|(worker, _)| *worker);
        let others = named.chain(found.owner);
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

    fn reason(&self, partition: &str, from: Option<&String>, to: &String) -> &'static str {
        let worker = from.and_then(|from| self.view.input.workers.get(from));
        match worker {
            _ if self.view.input.pins.get(partition) == Some(to) => "pinned",
            None => "unowned",
            Some(worker) if worker.drained => "drained",
            Some(_) => "balance",
        }
    }
}
