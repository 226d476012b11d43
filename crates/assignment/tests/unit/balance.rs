//! The moves of a target: each lowers the potential, and a part of them leads to the same target.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn candidate() -> impl Strategy<Value = Candidate> {
    let parts = (1..5_u32, option::of(0..3_u32), 0..8_u8);
    parts.prop_map(|(capacity, zone, kind)| Candidate {
        capacity,
        zone,
        takes: kind > 1,
        keeps: kind > 0,
    })
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1_u32), 1..9_u32, 1..1_001_u32]
}

fn item(homeless: bool) -> impl Strategy<Value = Item> {
    let at = match homeless {
        true => option::of(0..6_u32).boxed(),
        false => (0..6_u32).prop_map(Some).boxed(),
    };
    let pin = option::weighted(0.1, 0..6_u32);
    let parts = (weight(), option::of(0..3_u32), pin, at, 0..3_u64);
    parts.prop_map(|(weight, zone, pin, at, rank)| Item {
        weight,
        zone,
        pin,
        at,
        rank,
    })
}

/// Workers, and partitions that each have a worker.
fn fleet(homeless: bool) -> impl Strategy<Value = (Vec<Candidate>, Vec<Item>)> {
    let fleet = (vec(candidate(), 6), vec(item(homeless), 1..80));
    fleet.prop_filter("a worker that takes", |(workers, _)| {
        workers.iter().any(|worker| worker.takes)
    })
}

/// The sum over all pairs of partitions of a worker of the product of their weights, in proportion
/// to the capacity of the worker; times 60, which all capacities divide.
///
/// Pairs with a partition of a kind that is balanced later do not count.
fn potential(workers: &[Candidate], items: &[Item], places: &[Option<Place>], kind: Kind) -> u128 {
    let balance = Balance::new(workers, items);
    let takers = workers.iter().filter(|worker| worker.takes);
    let zones = takers.filter_map(|worker| worker.zone).collect();
    let mut sum = 0;
    for (place, worker) in workers.iter().enumerate() {
        let (mut before, mut own, mut squares) = (0_u128, 0_u128, 0_u128);
        for (item, _) in items
            .iter()
            .zip(places)
            .filter(|it| *it.1 == Some(place as Place))
        {
            let (of, weight) = (balance.kind(item, &zones), u128::from(item.weight));
            let is_fixed = worker.keeps && !worker.takes;
            if of == kind {
                own += weight;
                squares += weight * weight;
            } else if is_fixed || rank(of) < rank(kind) {
                before += weight;
            }
        }
        let pairs = before * own + (own * own - squares) / 2;
        sum += pairs * 60 / u128::from(worker.capacity);
    }
    sum
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Pinned(_) => 0,
        Kind::Zone(_) => 1,
        Kind::Free => 2,
    }
}

/// The items, after so many steps.
fn after(items: &[Item], target: &Target, steps: usize) -> Vec<Item> {
    let mut items = items.to_vec();
    for step in &target.steps[..steps] {
        items[*step as usize].at = target.places[*step as usize];
    }
    items
}

proptest! {
    #[test]
    fn each_move_lowers_the_potential((workers, items) in fleet(false)) {
        let target = target(&workers, &items, false);
        let takers = workers.iter().filter(|worker| worker.takes);
        let zones = takers.filter_map(|worker| worker.zone).collect();
        let balance = Balance::new(&workers, &items);
        let mut places = balance.target.places.clone();
        for step in &target.steps {
            let number = *step as usize;
            let kind = balance.kind(&items[number], &zones);
            let from = places[number];
            let before = potential(&workers, &items, &places, kind);
            places[number] = target.places[number];
            let is_drained = from.is_none_or(|from| !balance.may_go(from, kind));
            // A partition that may not stay where it is moves whatever the potential is.
            if !is_drained {
                let after = potential(&workers, &items, &places, kind);
                prop_assert!(after < before, "{number}: {before} to {after}");
            }
        }
        prop_assert_eq!(places, target.places);
    }

    #[test]
    fn each_partition_moves_at_most_once_and_then_stays((workers, items) in fleet(true)) {
        let first = target(&workers, &items, false);
        let mut moved: Vec<u32> = first.steps.clone();
        moved.sort_unstable();
        moved.dedup();
        prop_assert_eq!(moved.len(), first.steps.len());
        let then = after(&items, &first, first.steps.len());
        let second = target(&workers, &then, false);
        prop_assert_eq!(&second.places, &first.places);
        prop_assert!(second.steps.is_empty());
    }

    #[test]
    fn target_stays_while_the_moves_are_carried_out_in_their_order(
        (workers, items) in fleet(false),
        part in 0.0..1.0_f64,
    ) {
        let first = target(&workers, &items, false);
        let done = (first.steps.len() as f64 * part) as usize;
        let rest = target(&workers, &after(&items, &first, done), false);
        prop_assert_eq!(&rest.places, &first.places);
        prop_assert_eq!(&rest.steps, &first.steps[done..]);
    }

    #[test]
    fn frozen_partition_leaves_no_worker_that_is_there((workers, items) in fleet(true)) {
        let frozen = target(&workers, &items, true);
        for (item, place) in items.iter().zip(&frozen.places) {
            prop_assert!(item.at.is_none() || item.at == *place);
            prop_assert!(place.is_some());
        }
    }
}
