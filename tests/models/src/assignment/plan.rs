//! The plan that a leader computes from the znodes.

use super::setting::{AssignmentModel, Change, Grace, MOST};
use super::state::{Entry, Plan, Set, State};

/// A worker for each partition.
type Owners = [Option<usize>; MOST];

impl AssignmentModel {
    /// The plan that this leader would write for the state.
    pub(super) fn next_plan(&self, state: &State, leader: usize) -> Plan {
        let present: Owners = std::array::from_fn(|it| self.present(state, leader, it));
        let balance = Balance {
            model: self,
            state,
            there: self.there(state, leader),
            placed: self.placed(state),
        };
        let planned = balance.plan(present);
        self.pages(state, &present, &planned)
    }

    /// The members that may take partitions.
    pub(super) fn takers(&self, state: &State) -> Set {
        let mut takers = Set::default();
        for worker in 0..self.workers {
            let takes = state.is_member(worker) && !state.orders.drained.has(worker);
            takers.put(worker, takes);
        }
        takers
    }

    /// The members, and the vanished workers in their grace.
    fn there(&self, state: &State, leader: usize) -> Set {
        let mut there = Set::default();
        for worker in 0..self.workers {
            let is_over = state.workers[leader].graces.has(worker);
            let in_grace = match self.grace {
                Grace::Absent => self.has(Change::KeepsTheDead),
                Grace::Ends => !is_over,
                Grace::Lasts => true,
            };
            there.put(worker, state.is_member(worker) || in_grace);
        }
        there
    }

    /// The worker that the partition is planned with, of those that are there.
    fn present(&self, state: &State, leader: usize, partition: usize) -> Option<usize> {
        if self.has(Change::PlansAfresh) {
            return None;
        }
        let there = self.there(state, leader);
        let is_planned = |it: &usize| state.entry(*it, partition) == Entry::Own;
        let listed = self.owner(state, partition);
        let listed = listed.filter(|it| state.is_member(*it));
        let planned = || there.elements().filter(is_planned);
        let by_plan = planned().find(|it| state.is_member(*it));
        let in_grace = planned().find(|it| !state.is_member(*it));
        let is_first = |_: &usize| self.has(Change::PlansFromOwned);
        let awaited = in_grace.filter(|_| self.has(Change::AwaitsTheVanished));
        listed
            .filter(is_first)
            .or(listed.filter(is_planned))
            .or(by_plan)
            .or(awaited)
            .or(listed)
            .or(in_grace)
    }

    /// The worker that lists the partition as owned, with the largest token.
    fn owner(&self, state: &State, partition: usize) -> Option<usize> {
        state.listed[partition].last()
    }

    /// The worker that an operator has chosen for each partition, if that worker may take it.
    fn placed(&self, state: &State) -> Owners {
        let takers = self.takers(state);
        state.orders.placed.map(|placed| {
            let placed = placed.map(usize::from);
            placed.filter(|worker| takers.has(*worker) && !state.orders.frozen)
        })
    }

    /// The pages that lead to this plan, with few moves at once.
    fn pages(&self, state: &State, present: &Owners, planned: &Owners) -> Plan {
        let mut plan: Plan = std::array::from_fn(|it| state.is_member(it).then(Default::default));
        let moving = (0..self.partitions).filter(|it| self.is_moving(state, present, *it));
        let moving = match self.has(Change::CountsNoMoves) {
            true => 0,
            false => moving.count(),
        };
        let mut room = self.budget.saturating_sub(moving);
        for partition in 0..self.partitions {
            let Some(to) = planned[partition] else {
                continue;
            };
            let from = present[partition];
            let is_served = self.owner(state, partition).is_some() || from.is_some();
            if from == Some(to) || !is_served {
                self.own(state, &mut plan, partition, to);
            } else if room > 0 {
                room -= 1;
                self.own(state, &mut plan, partition, to);
            } else if let Some(from) = from {
                self.own(state, &mut plan, partition, from);
            }
        }
        plan
    }

    /// True if the partition is on its way to the worker that it is planned with.
    fn is_moving(&self, state: &State, present: &Owners, partition: usize) -> bool {
        let owner = self.owner(state, partition);
        let mut workers = 0..self.workers;
        let is_given = workers.any(|it| state.entry(it, partition) == Entry::Give);
        let to = present[partition];
        to.is_some() && owner != to && (owner.is_some() || is_given)
    }

    /// Plans a worker as the owner, and each other one that may own the partition as its giver.
    fn own(&self, state: &State, plan: &mut Plan, partition: usize, to: usize) {
        let owner = self.owner(state, partition);
        plan[to].get_or_insert_default()[partition] = Entry::Own;
        let is_listed = self.has(Change::ComparesNoTokens) && state.listed[partition].has(to);
        if owner == Some(to) || is_listed {
            return;
        }
        for other in (0..self.workers).filter(|it| *it != to && state.is_member(*it)) {
            let is_named = state.entry(other, partition) != Entry::Nothing;
            if is_named || owner == Some(other) {
                plan[other].get_or_insert_default()[partition] = Entry::Give;
            }
        }
    }
}

/// The assignment of the partitions to those that are there.
struct Balance<'a> {
    model: &'a AssignmentModel,
    state: &'a State,
    there: Set,
    placed: Owners,
}

impl Balance<'_> {
    fn plan(&self, present: Owners) -> Owners {
        let (model, orders) = (self.model, &self.state.orders);
        let takers = model.takers(self.state);
        let stays = |worker: &usize| {
            let is_drained = orders.drained.has(*worker) && !takers.is_empty();
            self.there.has(*worker) && (orders.frozen || !is_drained)
        };
        let ignores_placed = model.has(Change::BalancesThePlaced) && self.are_placed(&present);
        let mut planned: Owners = [None; MOST];
        for partition in 0..model.partitions {
            let placed = self.placed[partition].filter(|_| !ignores_placed);
            planned[partition] = placed.or(present[partition].filter(stays));
        }
        for partition in 0..model.partitions {
            if planned[partition].is_none() {
                planned[partition] = lightest(&planned, takers);
            }
        }
        let skips = model.has(Change::BalancesThePlaced) && !ignores_placed && self.has_placed();
        if !orders.frozen && !skips {
            while self.improve(&mut planned, takers, ignores_placed) {
                if model.has(Change::MovesForNothing) {
                    break;
                }
            }
        }
        planned
    }

    fn has_placed(&self) -> bool {
        self.placed.iter().any(Option::is_some)
    }

    fn are_placed(&self, present: &Owners) -> bool {
        let mut pairs = self.placed.iter().zip(present);
        self.has_placed() && pairs.all(|(placed, at)| placed.is_none() || placed == at)
    }

    /// Moves one partition from a heavier worker to the lightest. False if that improves nothing.
    fn improve(&self, planned: &mut Owners, takers: Set, ignores_placed: bool) -> bool {
        let least = if self.model.has(Change::MovesForNothing) {
            1
        } else {
            2
        };
        let Some(to) = lightest(planned, takers) else {
            return false;
        };
        let is_movable = |partition: &usize| {
            let from = planned[*partition].filter(|it| takers.has(*it));
            let is_heavier = |it: usize| load(planned, it) >= load(planned, to) + least;
            from.is_some_and(is_heavier) && (ignores_placed || self.placed[*partition].is_none())
        };
        let heaviest = (0..self.model.partitions)
            .filter(is_movable)
            .max_by_key(|it| {
                let from = planned[*it].unwrap_or(to);
                // A partition that nobody has begun to work on costs least.
                let is_new = self.model.owner(self.state, *it) != Some(from);
                (load(planned, from), is_new, *it)
            });
        if let Some(partition) = heaviest {
            planned[partition] = Some(to);
        }
        heaviest.is_some()
    }
}

fn load(planned: &Owners, worker: usize) -> usize {
    planned.iter().filter(|it| **it == Some(worker)).count()
}

fn lightest(planned: &Owners, takers: Set) -> Option<usize> {
    takers.elements().min_by_key(|it| load(planned, *it))
}
