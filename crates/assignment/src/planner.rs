//! What the leader computes from a look at the state. It asks nobody, and may take a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes_core::ensemble::Operation;
use zookeeper_recipes_group::Member;

use crate::children::Children;
use crate::layout::FREEZE;
use crate::member::MemberData;
use crate::next_plans::{Goal, Next, OWN, View};
use crate::options::AssignmentOptions;
use crate::owned::{self, Owner};
use crate::partitions::Partitions;
use crate::patience::{Fault, LONGEST, Late, Patience};
use crate::plans::Plans;
use crate::window::Window;

/// The state as the leader has read it last.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) members: Vec<Member>,
    pub(crate) owned: Arc<Children>,
    pub(crate) orders: Arc<Children>,
    pub(crate) drains: Arc<Children>,
    pub(crate) pins: Arc<Children>,
    pub(crate) partitions: Partitions,
}

/// What a leader remembers from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    goal: Goal,
    /// The workers that have vanished, and when their grace ends.
    gone: BTreeMap<String, Instant>,
    patience: Patience,
    window: Window,
    /// True if this leader has taken over what the one before it has noted.
    has_begun: bool,
}

/// What follows from a look at the state.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// The writes that make the plans the next ones.
    pub(crate) operations: Vec<Operation>,
    /// What the writes were made of. The plans are no longer in it.
    pub(crate) next: Next,
}

impl Planner {
    /// Computes the next plans, and takes them for written.
    pub(crate) fn look(
        &mut self,
        state: &State,
        plans: &mut Plans,
        options: &AssignmentOptions,
        now: Instant,
    ) -> Looked {
        let mut view = state.view();
        view.plans = plans.all();
        view.max_moves = options.max_moves;
        view.move_within = options.move_within;
        if !std::mem::replace(&mut self.has_begun, true) {
            for (worker, plan) in &view.plans {
                self.patience.take_over(worker, &plan.note);
            }
        }
        let grace_ends = self.await_the_gone(&mut view, options.grace, now);
        let Planner {
            goal,
            patience,
            window,
            ..
        } = self;
        let mut next = view.next(goal, patience, window, now);
        next.ends = next.ends.into_iter().chain(grace_ends).min();
        let plans_next = std::mem::take(&mut next.plans);
        Looked {
            operations: plans.change(&options.acl, plans_next),
            next,
        }
    }

    /// Notes how many moves wait for their turn, and the longest time that a write of plans took.
    pub(crate) fn written(&mut self, deferred: usize, took: Duration, timeout: Duration) {
        self.window.written(deferred, took, timeout);
    }

    /// Sets the worker aside that holds up a late move, by the queue of the partition's lock.
    pub(crate) fn blame(&mut self, late: &Late, queue: &[String]) -> Option<(String, Fault)> {
        self.patience.blame(late, queue)
    }

    /// Notes the workers that have vanished, and lets them keep their partitions for the grace.
    ///
    /// Returns when the first grace ends.
    fn await_the_gone(
        &mut self,
        view: &mut View,
        grace: Duration,
        now: Instant,
    ) -> Option<Instant> {
        let has_left = |worker: &str| !view.workers.contains_key(worker);
        let planned = view
            .plans
            .iter()
            .filter(|(worker, plan)| has_left(worker) && plan.lines.values().any(|it| it == OWN));
        let left: BTreeSet<String> = planned.map(|(worker, _)| worker.clone()).collect();
        self.gone.retain(|worker, _| left.contains(worker));
        for worker in left {
            let end = now + grace.min(LONGEST);
            self.gone.entry(worker).or_insert(end);
        }
        let awaited = self.gone.iter().filter(|(_, end)| **end > now);
        view.awaited = awaited.clone().map(|(worker, _)| worker.clone()).collect();
        awaited.map(|(_, end)| *end).min()
    }
}

impl State {
    fn view(&self) -> View {
        let workers = self.members.iter().map(|member| {
            let is_drained = self.drains.contains_key(&member.name);
            let planned = MemberData::parse(&member.data).planned(is_drained);
            (member.name.clone(), planned)
        });
        let pin = |(partition, worker): (&String, &Arc<[u8]>)| {
            let worker = String::from_utf8_lossy(worker).trim().to_owned();
            (partition.clone(), worker)
        };
        let owners = owned::owners(&self.owned).into_iter();
        let owner = |(partition, owner): (String, Owner)| {
            (partition, (owner.worker, owner.fencing_token.get()))
        };
        let tokens = self
            .members
            .iter()
            .map(|it| (it.name.clone(), it.token.get()));
        View {
            tokens: tokens.collect(),
            partitions: self.partitions.planned().clone(),
            workers: workers.collect(),
            owned: owners.map(owner).collect(),
            pins: self.pins.iter().map(pin).collect(),
            frozen: self.orders.contains_key(FREEZE),
            ..View::default()
        }
    }
}
