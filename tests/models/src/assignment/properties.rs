//! What is promised, and what is seen.

use stateright::Property;

use super::setting::{AssignmentModel, Grace};
use super::state::{Entry, Phase, Session, State};

impl AssignmentModel {
    /// No two workers own a partition.
    pub const EXCLUSION: &str = "no two workers own a partition";
    /// If no step is possible, each partition has an owner, by plan, and the plan is balanced.
    pub const SETTLED: &str = "at rest each partition is owned by the worker of a balanced plan";
    /// After an event, the plans written and the locks granted are not more than stated.
    pub const REST: &str = "the moves come to rest";
    /// No plan of a leader arrives after it has lost the leadership.
    pub const AUTHOR: &str = "no old leader writes a plan";
    /// No partition is released while nobody waits for it.
    pub const NO_GAP: &str = "the next owner waits before a partition is released";
    /// The partitions of workers that no event has struck stay.
    pub const OTHERS_STAY: &str = "the partitions of the other workers stay";
    /// So many partitions at most are given away at once.
    pub const BUDGET: &str = "no more moves at once than stated";
    /// A partition has moved from a worker that lives to another one.
    pub const HANDED_ON: &str = "a partition is handed on";
    /// A leader has lost the leadership with a plan in its hand.
    pub const OLD_DRAFT: &str = "an old leader has a plan to write";

    pub(super) fn promises(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(Self::EXCLUSION, |_, state: &State| state.is_exclusive()),
            Property::always(Self::SETTLED, |model: &Self, state| {
                model.moves_on(state) || model.is_settled(state)
            }),
            Property::always(Self::REST, |model: &Self, state: &State| {
                let most = model.most;
                most.is_none_or(|(writes, grants)| state.writes <= writes && state.grants <= grants)
            }),
            Property::always(Self::AUTHOR, |_, state: &State| !state.has_old_plan),
            Property::always(Self::NO_GAP, |_, state: &State| !state.has_gap),
            Property::always(Self::OTHERS_STAY, Self::others_stay),
            Property::always(Self::BUDGET, |model: &Self, state: &State| {
                let given = (0..model.partitions).filter(|it| state.is_given(*it));
                given.count() <= model.budget
            }),
            Property::sometimes(Self::HANDED_ON, |model: &Self, state: &State| {
                (0..model.partitions).any(|partition| {
                    let queue = state.locks[partition];
                    let drains = |it: usize| state.workers[it].phases[partition] == Phase::Drains;
                    queue.len() > 1 && queue.first().is_some_and(drains)
                })
            }),
            Property::sometimes(Self::OLD_DRAFT, |_, state: &State| {
                let mut drafts = state.workers.iter().filter_map(|worker| worker.draft);
                drafts.any(|draft| draft.is_old)
            }),
        ]
    }

    fn moves_on(&self, state: &State) -> bool {
        let mut steps = Vec::new();
        self.steps(state, &mut steps);
        !steps.is_empty()
    }

    fn is_settled(&self, state: &State) -> bool {
        let takers = self.takers(state);
        let is_alive = state
            .workers
            .iter()
            .any(|worker| worker.session == Session::Joined && !worker.leaves);
        if !is_alive {
            return true;
        }
        let is_planned = |partition| {
            let mut owners =
                (0..self.workers).filter(|it| state.entry(*it, partition) == Entry::Own);
            let owner = owners.next();
            match owner {
                _ if state.is_given(partition) => false,
                Some(owner) if state.is_member(owner) => {
                    let phase = state.workers[owner].phases[partition];
                    let listed = state.listed[partition];
                    owners.next().is_none()
                        && phase == Phase::Owns
                        && listed.last() == Some(owner)
                        && state.locks[partition].len() == 1
                }
                Some(_) => self.grace == Grace::Lasts,
                None => takers.is_empty(),
            }
        };
        let is_fixed = |leader: usize| self.next_plan(state, leader) == state.plan;
        (0..self.partitions).all(is_planned)
            && state.leader.is_some_and(is_fixed)
            && self.is_balanced(state)
    }

    /// True if each partition is owned by the plan, and no plan is being written.
    pub(super) fn is_carried_out(&self, state: &State) -> bool {
        let has_draft = state.workers.iter().any(|worker| worker.draft.is_some());
        let is_owned = |partition: usize| {
            let entries = (0..self.workers).map(|it| (it, state.entry(it, partition)));
            let mut entries = entries.filter(|(_, entry)| *entry != Entry::Nothing);
            let owns = |(worker, entry): (usize, Entry)| {
                entry == Entry::Own && state.workers[worker].phases[partition] == Phase::Owns
            };
            entries.next().is_some_and(owns) && entries.next().is_none()
        };
        !has_draft && (0..self.partitions).all(is_owned)
    }

    fn is_balanced(&self, state: &State) -> bool {
        let orders = &state.orders;
        let is_bound = orders.frozen || orders.placed.iter().any(Option::is_some);
        let loads = self.takers(state).elements().map(|worker| {
            let owned = state.plan[worker].unwrap_or_default();
            owned.iter().filter(|entry| **entry == Entry::Own).count()
        });
        let loads: Vec<usize> = loads.collect();
        let difference = loads.iter().max().zip(loads.iter().min());
        is_bound
            || self.grace == Grace::Lasts
            || difference.is_none_or(|(most, least)| most - least <= 1)
    }

    fn others_stay(&self, state: &State) -> bool {
        (0..self.partitions).all(|partition| {
            let home = self.home(partition).filter(|it| !state.struck.has(*it));
            home.is_none_or(|home| state.workers[home].phases[partition] == Phase::Owns)
        })
    }
}

impl State {
    fn is_exclusive(&self) -> bool {
        (0..self.locks.len()).all(|partition| {
            let owners = self.workers.iter().filter(|worker| worker.owns(partition));
            owners.count() <= 1
        })
    }

    /// True if a worker that owns the partition is to give it away.
    fn is_given(&self, partition: usize) -> bool {
        let mut workers = self.workers.iter().enumerate();
        workers.any(|(index, worker)| {
            self.entry(index, partition) == Entry::Give && worker.owns(partition)
        })
    }
}
