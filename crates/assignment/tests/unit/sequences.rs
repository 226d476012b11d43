//! Sequences of plans, moves and events: each comes to rest.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::plan::PlannedPartition;

#[derive(Clone, Debug)]
enum Event {
    Comes(u8, u32, Option<u8>),
    Goes(u8),
    Drains(u8),
    Undrains(u8),
    Pins(u8, u8),
    Unpins(u8),
    Freezes(bool),
}

fn event() -> impl Strategy<Value = Event> {
    let worker = 0..7_u8;
    prop_oneof![
        (worker.clone(), 1..4_u32, option::of(0..2_u8))
            .prop_map(|(it, c, z)| Event::Comes(it, c, z)),
        worker.clone().prop_map(Event::Goes),
        worker.clone().prop_map(Event::Drains),
        worker.clone().prop_map(Event::Undrains),
        (any::<u8>(), worker).prop_map(|(partition, worker)| Event::Pins(partition, worker)),
        any::<u8>().prop_map(Event::Unpins),
        any::<bool>().prop_map(Event::Freezes),
    ]
}

/// A fleet whose servers answer at once, and whose moves take as long as the test has them.
#[derive(Clone, Debug)]
struct Fleet {
    view: View,
    planner: Planner,
    now: Instant,
    token: i64,
    /// How often each partition got an owner.
    grants: BTreeMap<String, usize>,
}

impl Fleet {
    fn new(weights: &[(u32, Option<u8>)], max_moves: usize) -> Fleet {
        let partition = |(number, (weight, zone)): (usize, &(u32, Option<u8>))| {
            let about = PlannedPartition {
                weight: *weight,
                zone: zone.map(|zone| format!("z{zone}")),
                worker: None,
            };
            (format!("p{number:03}"), about)
        };
        Fleet {
            view: View {
                input: Input {
                    partitions: Arc::new(weights.iter().enumerate().map(partition).collect()),
                    ..Input::default()
                },
                max_moves,
                move_within: Duration::from_secs(60),
                ..View::default()
            },
            planner: Planner::default(),
            now: Instant::now(),
            token: 0,
            grants: BTreeMap::new(),
        }
    }

    fn happen(&mut self, event: &Event) {
        let id = |worker: &u8| format!("w{worker}");
        let partition = |number: &u8| {
            let count = self.view.input.partitions.len();
            let name = self
                .view
                .input
                .partitions
                .keys()
                .nth(usize::from(*number) % count);
            name.cloned().unwrap_or_default()
        };
        match event {
            Event::Comes(worker, capacity, zone) => {
                let zone = zone.map(|zone| format!("z{zone}"));
                let worker = self.view.input.workers.entry(id(worker)).or_default();
                worker.capacity = *capacity;
                worker.zone = zone;
            }
            Event::Goes(worker) => {
                self.view.input.workers.remove(&id(worker));
                let owned = &mut self.view.owned;
                owned.retain(|_, (owner, _)| *owner != id(worker));
            }
            Event::Drains(worker) | Event::Undrains(worker) => {
                if let Some(found) = self.view.input.workers.get_mut(&id(worker)) {
                    found.drained = matches!(event, Event::Drains(_));
                }
            }
            Event::Pins(number, worker) => {
                let name = partition(number);
                self.view.input.pins.insert(name, id(worker));
            }
            Event::Unpins(number) => drop(self.view.input.pins.remove(&partition(number))),
            Event::Freezes(frozen) => self.view.input.frozen = *frozen,
        }
    }

    /// The leader plans, and begins no more moves than may be under way.
    fn plan(&mut self) {
        let before = self.under_way();
        let next = self.planner.next(&self.view, self.now);
        self.view.plans = next.plans;
        let after = self.under_way();
        assert!(
            after <= before.max(self.view.max_moves),
            "{after} moves at once"
        );
    }

    /// How many partitions with an owner move.
    fn under_way(&self) -> usize {
        let owned = self.view.owned.keys();
        owned.filter(|it| self.next_owner(it).is_some()).count()
    }

    /// The worker that a partition is moving to.
    fn next_owner(&self, partition: &str) -> Option<String> {
        let owner = self.view.owned.get(partition).map(|(owner, _)| owner);
        let plans = self.view.plans.iter();
        let mut planned =
            plans.filter(|(_, plan)| plan.lines.get(partition).is_some_and(|it| it == OWN));
        let next = planned.find(|(worker, _)| Some(*worker) != owner)?;
        Some(next.0.clone())
    }

    /// Ends each move for which `ends` says so.
    fn carry_out(&mut self, mut ends: impl FnMut(&str) -> bool) {
        let names: Vec<String> = self.view.input.partitions.keys().cloned().collect();
        for name in names {
            let next = self
                .next_owner(&name)
                .filter(|it| self.view.input.workers.contains_key(it));
            if let Some(next) = next.filter(|_| ends(&name)) {
                self.token += 1;
                self.view.owned.insert(name.clone(), (next, self.token));
                *self.grants.entry(name).or_default() += 1;
            }
        }
    }

    /// Plans and moves until nothing changes. A new leader plans each time, if `deposes`.
    fn settle(&mut self, deposes: bool) {
        let most = 3 * self.view.input.partitions.len() + 10;
        for _ in 0..most {
            if deposes {
                self.planner.goal = Goal::default();
            }
            let (plans, owned) = (self.view.plans.clone(), self.view.owned.clone());
            self.plan();
            self.carry_out(|_| true);
            if self.view.plans == plans && self.view.owned == owned {
                return;
            }
        }
        panic!("no rest after {most} plans");
    }
}

fn weights() -> impl Strategy<Value = Vec<(u32, Option<u8>)>> {
    let weight = prop_oneof![Just(1_u32), 1..9_u32, 1..1_001_u32];
    vec((weight, option::weighted(0.3, 0..2_u8)), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn moves_come_to_rest_after_any_events(
        weights in weights(),
        max_moves in prop_oneof![Just(1_usize), Just(2), 1..40_usize],
        events in vec((event(), any::<u64>()), 1..20),
        deposes in any::<bool>(),
    ) {
        let mut fleet = Fleet::new(&weights, max_moves);
        for (event, seed) in &events {
            fleet.happen(event);
            if seed % 7 == 0 {
                fleet.planner.goal = Goal::default();
            }
            fleet.plan();
            // Some moves end, and the others go on or fail.
            let mut number = 0;
            fleet.carry_out(|_| {
                number += 1;
                (seed >> (number % 61)) & 1 == 0
            });
        }
        fleet.settle(deposes);
        let takes = fleet.view.input.workers.values().any(|worker| !worker.drained);
        let owned = fleet.view.owned.len();
        prop_assert!(!takes || owned == fleet.view.input.partitions.len(), "{owned} are owned");
    }

    #[test]
    fn worker_that_comes_or_goes_moves_each_partition_at_most_once(
        weights in weights(),
        max_moves in prop_oneof![Just(1_usize), Just(2), 1..40_usize],
        workers in vec((1..4_u32, option::of(0..2_u8)), 2..6),
        deposes in any::<bool>(),
    ) {
        let mut fleet = Fleet::new(&weights, max_moves);
        for ((capacity, zone), worker) in workers.iter().zip(0..) {
            fleet.happen(&Event::Comes(worker, *capacity, *zone));
            fleet.settle(false);
        }
        // A new leader may place anew what nobody owns.
        let events = [(Event::Comes(6, 2, Some(1)), deposes), (Event::Goes(0), false)];
        for (event, deposes) in events {
            fleet.grants.clear();
            fleet.happen(&event);
            fleet.settle(deposes);
            let most = fleet.grants.values().max();
            prop_assert!(most.is_none_or(|most| *most == 1), "{event:?}: {:?}", fleet.grants);
        }
    }
    /// The moves of a new leader continue those of the leader before it.
    #[test]
    fn partition_moves_at_most_once_though_each_plan_is_that_of_a_new_leader(
        partitions in vec((1..1_001_u32, option::weighted(0.3, 0..2_u8), 0..5_u8), 1..60),
        max_moves in 1..4_usize,
        workers in vec((1..4_u32, option::of(0..2_u8)), 5),
    ) {
        let weights: Vec<_> = partitions.iter().map(|it| (it.0, it.1)).collect();
        let mut fleet = Fleet::new(&weights, max_moves);
        for ((capacity, zone), worker) in workers.iter().zip(0..) {
            fleet.happen(&Event::Comes(worker, *capacity, *zone));
        }
        let names: Vec<String> = fleet.view.input.partitions.keys().cloned().collect();
        for ((name, (.., owner)), token) in names.into_iter().zip(&partitions).zip(1..) {
            let owner = format!("w{owner}");
            let plan = fleet.view.plans.entry(owner.clone()).or_default();
            plan.lines.insert(name.clone(), OWN.to_owned());
            fleet.view.owned.insert(name, (owner, token));
        }
        fleet.settle(true);
        let most = fleet.grants.values().max();
        prop_assert!(most.is_none_or(|most| *most == 1), "{:?}", fleet.grants);
    }
}
