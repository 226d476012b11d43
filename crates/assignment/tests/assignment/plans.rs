//! The laws of the plan.

use std::collections::BTreeSet;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
use zookeeper_recipes_assignment::{Plan, PlannedPartition, PlannedWorker, plan};

use crate::support::*;

type Partitions = BTreeMap<String, PlannedPartition>;
type Workers = BTreeMap<String, PlannedWorker>;

fn plain(partitions: usize, workers: usize) -> (Partitions, Workers) {
    let partitions = (0..partitions).map(|it| (format!("p{it}"), PlannedPartition::default()));
    let workers = (0..workers).map(|it| (format!("w{it}"), PlannedWorker::default()));
    (partitions.collect(), workers.collect())
}

/// The number of partitions whose worker differs, of those that have one in `before`.
fn moved(before: &Plan, after: &Plan) -> usize {
    let moved = before
        .iter()
        .filter(|(name, worker)| after.get(*name) != Some(worker));
    moved.count()
}

fn counts(workers: &Workers, plan: &Plan) -> Vec<usize> {
    let of = |name| plan.values().filter(|worker| *worker == name).count();
    workers.keys().map(of).collect()
}

/// The fewest partitions that leave their worker, over all balanced plans.
fn fewest_moves(mut counts: Vec<usize>, partitions: usize) -> usize {
    counts.sort_unstable_by(|left, right| right.cmp(left));
    let (floor, extra) = (partitions / counts.len(), partitions % counts.len());
    let quotas = (0..counts.len()).map(|place| floor + usize::from(place < extra));
    let left = counts.iter().zip(quotas);
    left.map(|(count, quota)| count.saturating_sub(quota)).sum()
}

fn zone() -> impl Strategy<Value = Option<String>> {
    option::of((0..3_u8).prop_map(|zone| format!("z{zone}")))
}

fn worker() -> impl Strategy<Value = PlannedWorker> {
    let parts = (0..4_u32, zone(), proptest::bool::weighted(0.2));
    parts.prop_map(|(capacity, zone, drained)| PlannedWorker {
        capacity,
        zone,
        drained,
    })
}

fn partition() -> impl Strategy<Value = PlannedPartition> {
    let worker = option::weighted(0.2, (0..8_u8).prop_map(|it| format!("w{it}")));
    (0..9_u32, zone(), worker).prop_map(|(weight, zone, worker)| PlannedPartition {
        weight,
        zone,
        worker,
    })
}

/// Partitions, workers, and a present plan, also of partitions and workers that are gone.
fn any_state() -> impl Strategy<Value = (Partitions, Workers, Plan)> {
    let names = |kind: char, most: usize| (0..most).prop_map(move |it| format!("{kind}{it}"));
    let partitions = btree_map(names('p', 30), partition(), 0..25);
    let workers = btree_map(names('w', 8), worker(), 0..7);
    (
        partitions,
        workers,
        btree_map(names('p', 30), names('w', 8), 0..25),
    )
}

fn may_go(workers: &Workers, partition: &PlannedPartition, worker: &PlannedWorker) -> bool {
    let named = partition.worker.as_ref().and_then(|it| workers.get(it));
    if let Some(named) = named.filter(|it| !it.drained) {
        return std::ptr::eq(named, worker);
    }
    let lives = |zone: &&String| {
        let there = |it: &PlannedWorker| !it.drained && it.zone.as_ref() == Some(*zone);
        workers.values().any(there)
    };
    let preferred = partition.zone.as_ref().filter(lives);
    !worker.drained && preferred.is_none_or(|zone| worker.zone.as_ref() == Some(zone))
}

fn weight(partition: &PlannedPartition) -> f64 {
    f64::from(partition.weight.max(1))
}

fn capacity(worker: &PlannedWorker) -> f64 {
    f64::from(worker.capacity.max(1))
}

/// The partitions that may go to the same workers, by a rule that is no pin.
struct Kind {
    takers: Vec<String>,
    partitions: BTreeSet<String>,
    /// The partitions on top of which these are balanced.
    below: BTreeSet<String>,
}

impl Kind {
    fn tolerance(
        &self,
        partitions: &Partitions,
        workers: &Workers,
        loads: &BTreeMap<&String, f64>,
    ) -> f64 {
        let heaviest = self.partitions.iter().map(|name| weight(&partitions[name]));
        let capacities = || self.takers.iter().map(|worker| capacity(&workers[worker]));
        let all: f64 = self
            .takers
            .iter()
            .filter_map(|worker| loads.get(worker))
            .sum();
        let half = heaviest.fold(0.0, f64::max) / 2.0 / capacities().fold(1.0, f64::max);
        half.min(all / capacities().sum::<f64>() / 8.0)
    }
}

fn kinds(partitions: &Partitions, workers: &Workers) -> Vec<Kind> {
    let takes = |name: &&String| !workers[*name].drained;
    let mut zones: BTreeSet<&String> = BTreeSet::new();
    zones.extend(
        workers
            .values()
            .filter(|it| !it.drained)
            .filter_map(|it| it.zone.as_ref()),
    );
    let is_pinned = |partition: &PlannedPartition| {
        let named = partition.worker.as_ref().and_then(|it| workers.get(it));
        named.is_some_and(|worker| !worker.drained)
    };
    let of = |zone: Option<&String>| -> BTreeSet<String> {
        let is_so = |partition: &PlannedPartition| {
            let own = partition.zone.as_ref().filter(|it| zones.contains(it));
            !is_pinned(partition) && own == zone
        };
        let found = partitions.iter().filter(|(_, partition)| is_so(partition));
        found.map(|(name, _)| name.clone()).collect()
    };
    let free = of(None);
    let pinned = partitions
        .iter()
        .filter(|(_, partition)| is_pinned(partition));
    let pinned: BTreeSet<String> = pinned.map(|(name, _)| name.clone()).collect();
    let mut kinds = vec![Kind {
        takers: workers.keys().filter(takes).cloned().collect(),
        below: partitions
            .keys()
            .filter(|it| !free.contains(*it))
            .cloned()
            .collect(),
        partitions: free,
    }];
    for zone in &zones {
        let is_there = |name: &&String| takes(name) && workers[*name].zone.as_ref() == Some(zone);
        kinds.push(Kind {
            takers: workers.keys().filter(is_there).cloned().collect(),
            partitions: of(Some(zone)),
            below: pinned.clone(),
        });
    }
    kinds
}

/// Weights, the worker of each partition, and the number of workers.
fn small_fleet() -> impl Strategy<Value = (Vec<u32>, Vec<usize>, usize)> {
    let weight = prop_oneof![Just(1_u32), 1..4_u32, 1..100_u32];
    (2..4_usize, 1..7_usize).prop_flat_map(move |(workers, count)| {
        (
            prop_oneof![vec(weight.clone(), count), vec(Just(3_u32), count)],
            vec(0..workers, count),
            Just(workers),
        )
    })
}

/// The fewest moves from this plan to one that is its own next plan. A partition whose worker is
/// gone counts as one move.
fn least_moves(partitions: &Partitions, workers: &Workers, present: &Plan) -> usize {
    let names: Vec<&String> = partitions.keys().collect();
    let ids: Vec<&String> = workers.keys().collect();
    let count = ids.len().pow(names.len() as u32);
    let plans = (0..count).map(|mut number| {
        let place = |name: &&String| {
            let worker = ids[number % ids.len()].clone();
            number /= ids.len();
            ((*name).clone(), worker)
        };
        names.iter().map(place).collect::<Plan>()
    });
    let mut least = usize::MAX;
    for candidate in plans {
        let moves = moved(present, &candidate);
        if moves < least && plan(partitions, workers, &candidate) == candidate {
            least = moves;
        }
    }
    least
}

proptest! {
    #[test]
    fn each_partition_has_a_worker_that_it_may_have((partitions, workers, present) in any_state()) {
        let next = plan(&partitions, &workers, &present);
        let all_drained = workers.values().all(|worker| worker.drained);
        for (name, partition) in &partitions {
            match next.get(name) {
                Some(worker) if all_drained => prop_assert_eq!(present.get(name), Some(worker)),
                Some(worker) => prop_assert!(may_go(&workers, partition, &workers[worker])),
                None => prop_assert!(all_drained),
            }
        }
        prop_assert!(next.keys().all(|name| partitions.contains_key(name)));
    }

    #[test]
    fn no_worker_without_one_of_its_partitions_is_above_another_one_and_the_tolerance(
        (partitions, workers, present) in any_state(),
    ) {
        let next = plan(&partitions, &workers, &present);
        for kind in kinds(&partitions, &workers) {
            let is_of_it = |name: &String| kind.partitions.contains(name);
            let is_below = |name: &String| is_of_it(name) || kind.below.contains(name);
            let mut loads: BTreeMap<&String, f64> = BTreeMap::new();
            for (name, worker) in next.iter().filter(|(name, _)| is_below(name)) {
                *loads.entry(worker).or_default() += weight(&partitions[name]);
            }
            let level = |worker: &String, without: f64| {
                (loads.get(worker).copied().unwrap_or_default() - without) / capacity(&workers[worker])
            };
            let tolerance = kind.tolerance(&partitions, &workers, &loads);
            for (name, from) in next.iter().filter(|(name, _)| is_of_it(name)) {
                for to in &kind.takers {
                    let above = level(from, weight(&partitions[name])) - level(to, 0.0);
                    prop_assert!(above <= tolerance + 1e-6, "{name} to {to}: {above}, {tolerance}");
                }
            }
        }
    }

    #[test]
    fn moves_are_few_times_the_least_that_an_exhaustive_search_finds(
        (weights, homes, workers) in small_fleet(),
    ) {
        let names: Vec<String> = (0..weights.len()).map(|it| format!("p{it}")).collect();
        let about = |weight: &u32| PlannedPartition { weight: *weight, ..Default::default() };
        let partitions: Partitions = names.iter().cloned().zip(weights.iter().map(about)).collect();
        let there = |count: usize| -> Workers {
            (0..count).map(|it| (format!("w{it}"), PlannedWorker::default())).collect()
        };
        let first: Plan = names.iter().cloned().zip(homes.iter().map(|it| format!("w{it}"))).collect();
        let rest = plan(&partitions, &there(workers), &first);
        for after in [workers - 1, workers + 1] {
            let next = plan(&partitions, &there(after), &rest);
            let least = least_moves(&partitions, &there(after), &rest);
            let ratio = weights.iter().max().zip(weights.iter().min());
            let ratio = ratio.map_or(1, |(most, least)| most.div_ceil(*least) as usize);
            let most = if ratio == 1 { least } else { 2 * ratio * least };
            prop_assert!(moved(&rest, &next) <= most, "{} of {least}: {next:?}", moved(&rest, &next));
        }
    }

    #[test]
    fn plain_partitions_are_balanced_to_within_one_by_the_fewest_moves(
        (count, workers, owners) in (0..60_usize, 1..8_usize)
            .prop_flat_map(|(count, workers)| {
                (Just(count), Just(workers), vec(option::of(0..workers), count))
            }),
    ) {
        let (partitions, workers) = plain(count, workers);
        let owned = owners.iter().enumerate();
        let present: Plan = owned
            .filter_map(|(it, owner)| Some((format!("p{it}"), format!("w{}", (*owner)?))))
            .collect();
        let next = plan(&partitions, &workers, &present);
        let after = counts(&workers, &next);
        let spread = after.iter().max().zip(after.iter().min());
        prop_assert!(spread.is_some_and(|(most, least)| most - least <= 1), "{:?}", after);
        let fewest = fewest_moves(counts(&workers, &present), count);
        prop_assert_eq!(moved(&present, &next), fewest);
    }
}

#[test]
fn first_partition_goes_to_the_largest_worker() {
    let (partitions, mut workers) = plain(1, 3);
    for (worker, capacity) in workers.values_mut().zip([2, 5, 3]) {
        worker.capacity = capacity;
    }
    let first = plan(&partitions, &workers, &Plan::new());
    assert_eq!(counts(&workers, &first), [0, 1, 0]);
}
