//! What the leader computes from a look at the state. It asks nobody, and may take a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes_core::ensemble::Operation;
use zookeeper_recipes_group::Member;

use crate::children::Children;
use crate::layout::FREEZE;
use crate::member;
use crate::next_plans::{Goal, Input, Look, Next, OWN, View};
use crate::options::AssignmentOptions;
use crate::owned;
use crate::partitions::Partitions;
use crate::patience::{LONGEST, Patience};
use crate::plans::Plans;
use crate::window::Window;

/// What a leader remembers from one look to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planner {
    goal: Goal,
    /// The workers that have vanished, and when their grace ends.
    gone: BTreeMap<String, Instant>,
    pub(crate) patience: Patience,
    pub(crate) window: Window,
    /// True if this leader has taken over what the one before it has noted.
    has_begun: bool,
}

impl Planner {
    /// Computes the next plans, and the writes that make the plans those. Takes them for written.
    ///
    /// `children` are what is owned, the orders, the drains and the pins.
    pub(crate) fn look(
        &mut self,
        members: &[Member],
        children: &[Children],
        partitions: &Partitions,
        plans: &mut Plans,
        options: &AssignmentOptions,
        now: Instant,
    ) -> (Vec<Operation>, Next) {
        let mut view = view(members, children, partitions);
        view.plans = plans.all();
        view.max_moves = options.max_moves;
        view.move_within = options.move_within;
        if !std::mem::replace(&mut self.has_begun, true) {
            for (worker, plan) in &view.plans {
                self.patience.take_over(worker, &plan.note);
            }
        }
        let grace_ends = self.await_the_gone(&mut view, options.grace, now);
        let mut next = self.next(&view, now);
        next.ends = next.ends.into_iter().chain(grace_ends).min();
        let next_plans = std::mem::take(&mut next.plans);
        (plans.change(&options.acl, next_plans), next)
    }

    /// The next plans. The same state and the same memory give the same plans.
    fn next(&mut self, view: &View, now: Instant) -> Next {
        let mut look = Look::new(view);
        let moves = look.under_way();
        let progress = look.progress();
        let (ended, back) = self.patience.follow(&moves, &progress, &view.owned, now);
        let partitions = view.input.partitions.len();
        let at_once = self.window.ended(ended, partitions, view.max_moves);
        let (late, late_at) = self.patience.late(&moves, view.move_within, now);
        look.set_aside(&self.patience);
        self.goal.follow(&look, &self.patience);
        let next = look.next(&self.goal, &self.patience, at_once);
        let begins = next.moves.iter().map(|it| (&*it.partition, &*it.to));
        let begun_at = self.patience.begin(begins, now);
        let begun_at = begun_at.map(|at| at + view.move_within.min(LONGEST));
        Next {
            late,
            ends: late_at.into_iter().chain(begun_at).min(),
            back,
            ..next
        }
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
        let has_left = |worker: &str| !view.input.workers.contains_key(worker);
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
        view.input.awaited = awaited.clone().map(|(worker, _)| worker.clone()).collect();
        awaited.map(|(_, end)| *end).min()
    }
}

fn view(members: &[Member], children: &[Children], partitions: &Partitions) -> View {
    let [owned, orders, drains, pins] = children else {
        return View::default();
    };
    let worker = |it: &Member| {
        let (_, mut planned) = member::parse(&it.data);
        planned.drained = drains.contains_key(&it.name);
        (it.name.clone(), planned)
    };
    let pin = |(partition, worker): (&String, &Arc<[u8]>)| {
        let worker = String::from_utf8_lossy(worker).trim().to_owned();
        (partition.clone(), worker)
    };
    let token = |member: &Member| (member.name.clone(), member.token.get());
    let owners = owned::owners(owned).into_iter();
    let owned = owners.map(|(it, owner)| (it, (owner.worker, owner.fencing_token.get())));
    View {
        input: Input {
            partitions: partitions.planned().clone(),
            workers: members.iter().map(worker).collect(),
            pins: pins.iter().map(pin).collect(),
            frozen: orders.contains_key(FREEZE),
            ..Input::default()
        },
        tokens: members.iter().map(token).collect(),
        owned: owned.collect(),
        ..View::default()
    }
}

#[cfg(test)]
#[path = "../tests/unit/planner.rs"]
mod tests;

#[cfg(test)]
#[path = "../tests/unit/sequences.rs"]
mod sequences;
