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
        self.pages(state, &planned)
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

    /// The worker of the partition, by the znodes.
    fn present(&self, state: &State, leader: usize, partition: usize) -> Option<usize> {
        if self.has(Change::PlansAfresh) {
            return None;
        }
        let there = self.there(state, leader);
        let says = |entry, is_member| {
            let mut workers = there.elements();
            workers.find(|it| {
                state.entry(*it, partition) == entry && state.is_member(*it) == is_member
            })
        };
        let lists = (0..self.workers).find(|it| state.listed[*it].has(partition));
        let listed_and_planned = lists.filter(|it| state.entry(*it, partition) == Entry::Own);
        let by_plan = says(Entry::Own, true);
        let given = says(Entry::Give, true);
        let in_grace = says(Entry::Own, false);
        let listed_first = lists.filter(|_| self.has(Change::PlansFromOwned));
        listed_first
            .or(listed_and_planned)
            .or(by_plan)
            .or(lists)
            .or(given)
            .or(in_grace)
    }

    /// The worker that an operator has chosen for each partition, if that worker may take it.
    fn placed(&self, state: &State) -> Owners {
        let takers = self.takers(state);
        state.orders.placed.map(|placed| {
            let placed = placed.map(usize::from);
            placed.filter(|worker| takers.has(*worker) && !state.orders.frozen)
        })
    }

    /// The pages that lead from the present ones to this plan, with few moves at once.
    fn pages(&self, state: &State, planned: &Owners) -> Plan {
        let is_read = |worker: usize| state.is_member(worker) || state.plan[worker].is_some();
        let mut plan: Plan = std::array::from_fn(|it| is_read(it).then(Default::default));
        let mut put = |worker: usize, partition: usize, entry| {
            plan[worker].get_or_insert_default()[partition] = entry;
        };
        let moves: Vec<(usize, usize, Option<usize>)> = planned
            .iter()
            .enumerate()
            .filter_map(|(partition, to)| Some((partition, (*to)?)))
            .map(|(partition, to)| (partition, to, self.holder(state, partition, to)))
            .collect();
        // A move that this plan takes back counts as well: its pages are still to be written.
        let is_given = |partition: usize| {
            let mut members = (0..self.workers).filter(|it| state.is_member(*it));
            members.any(|it| state.entry(it, partition) == Entry::Give)
        };
        let is_under_way = |(partition, to, from): &(usize, usize, Option<usize>)| {
            let is_taken = from.is_some() && state.entry(*to, *partition) == Entry::Own;
            is_given(*partition) || is_taken
        };
        let mut under_way = match self.has(Change::CountsNoMoves) {
            true => 0,
            false => moves.iter().filter(|it| is_under_way(it)).count(),
        };
        for it in &moves {
            let (partition, to, from) = *it;
            let Some(from) = from else {
                put(to, partition, Entry::Own);
                continue;
            };
            let goes = is_under_way(it) || under_way < self.budget;
            if goes {
                under_way += usize::from(!is_under_way(it));
                put(to, partition, Entry::Own);
                put(from, partition, Entry::Give);
            } else {
                put(from, partition, Entry::Own);
            }
        }
        plan
    }

    /// Another member that may own the partition, until `to` lists it.
    fn holder(&self, state: &State, partition: usize, to: usize) -> Option<usize> {
        if state.listed[to].has(partition) {
            return None;
        }
        let mut others = (0..self.workers).filter(|it| *it != to && state.is_member(*it));
        let lists = others.clone().find(|it| state.listed[*it].has(partition));
        lists.or_else(|| others.find(|it| state.entry(*it, partition) != Entry::Nothing))
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
                let is_new = !self.state.listed[from].has(*it);
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
