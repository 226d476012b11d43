//! How long the leader computes, for 100,000 partitions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use zookeeper_recipes_assignment::{Plan, PlannedPartition, PlannedWorker, plan};
use zookeeper_recipes_benches::report::Table;

type Partitions = BTreeMap<String, PlannedPartition>;
type Workers = BTreeMap<String, PlannedWorker>;

/// Each plan is computed so many times. The shortest time counts.
const TIMES: usize = 5;

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    what: &'static str,
    partitions: usize,
    workers: usize,
    moves: usize,
    took: Duration,
}

/// Plans that many partitions ask for, beside the workers before and after a change.
pub(crate) fn measure(partitions: usize) -> Vec<Planned> {
    let mut rng = Rng::with_seed(7);
    let plain = |_: usize| PlannedPartition::default();
    let weights: Vec<u32> = (0..partitions).map(|_| rng.u32(1..=1_000)).collect();
    let weighted = |number: usize| PlannedPartition {
        weight: weights[number],
        ..plain(number)
    };
    let zoned = |number: usize| PlannedPartition {
        zone: Some(if number % 2 == 0 { "east" } else { "west" }.to_owned()),
        ..plain(number)
    };
    let all = |partition: &dyn Fn(usize) -> PlannedPartition| -> Partitions {
        let each = (0..partitions).map(|number| (number.to_string(), partition(number)));
        each.collect()
    };
    let (plain, weighted, zoned) = (all(&plain), all(&weighted), all(&zoned));
    vec![
        row("a start", &plain, &there(0, &equal), &there(10, &equal)),
        row("an arrival", &plain, &there(10, &equal), &there(11, &equal)),
        row(
            "an arrival, zones",
            &zoned,
            &there(10, &in_a_zone),
            &there(11, &in_a_zone),
        ),
        row(
            "an arrival, weights of 1 to 1,000",
            &weighted,
            &there(10, &equal),
            &there(11, &equal),
        ),
        row(
            "an arrival, capacities of 1 to 7",
            &weighted,
            &there(10, &of_a_size),
            &there(11, &of_a_size),
        ),
        row(
            "all on one of 10 workers",
            &weighted,
            &there(1, &equal),
            &there(10, &equal),
        ),
        row(
            "all on one of 1,000 workers",
            &weighted,
            &there(1, &equal),
            &there(1_000, &equal),
        ),
    ]
}

fn equal(_: usize) -> PlannedWorker {
    PlannedWorker::default()
}

fn of_a_size(number: usize) -> PlannedWorker {
    PlannedWorker {
        capacity: 1 + number as u32 % 7,
        ..equal(number)
    }
}

/// The eleventh worker is in the zone of two others, and the workers of the other zone keep all.
fn in_a_zone(number: usize) -> PlannedWorker {
    let zone = match number {
        0 | 1 | 10 => "east",
        _ => "west",
    };
    PlannedWorker {
        zone: Some(zone.to_owned()),
        ..equal(number)
    }
}

/// That many workers.
fn there(count: usize, worker: &dyn Fn(usize) -> PlannedWorker) -> Workers {
    let each = (0..count).map(|number| (format!("worker-{number:03}"), worker(number)));
    each.collect()
}

/// The plan after the workers `before` have become the workers `after`.
fn row(what: &'static str, partitions: &Partitions, before: &Workers, after: &Workers) -> Planned {
    let present = plan(partitions, before, &Plan::new());
    let mut took = Duration::MAX;
    let mut next = Plan::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        next = plan(partitions, after, &present);
        took = took.min(began.elapsed());
    }
    let moves = next
        .iter()
        .filter(|(name, worker)| present.get(*name) != Some(*worker));
    Planned {
        what,
        partitions: partitions.len(),
        workers: after.len(),
        moves: moves.count(),
        took,
    }
}

pub(crate) fn table(plans: &[Planned]) -> Table {
    Table::of(
        plans,
        &[
            ("what", &|it| it.what.into()),
            ("partitions", &|it| it.partitions.into()),
            ("workers", &|it| it.workers.into()),
            ("moves", &|it| it.moves.into()),
            ("a plan takes [ms]", &|it| {
                (it.took.as_secs_f64() * 1e3).into()
            }),
        ],
    )
}
