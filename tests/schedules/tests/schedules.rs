//! Random schedules of faults; `cargo xtask simulate` runs many more.

use zookeeper_recipes_schedules::{Figures, Variant, run, run_as};
use zookeeper_recipes_suite::TestedRecipe;

const SEEDS: u64 = 60;

fn promises_are_kept(name: &str) {
    let recipe = TestedRecipe::named(name).expect("a recipe of that name");
    let mut figures = Figures::default();
    for seed in 0..SEEDS {
        let report = run(recipe, seed, 0);
        figures += report.figures;
        assert!(
            report.violations.is_empty(),
            "cargo xtask simulate --recipe {name} --seed {seed}: {:#?}",
            report.violations,
        );
    }
    println!("{name}: {figures}");
    let happened = [
        figures.grants,
        figures.losses,
        figures.aborted,
        figures.expired,
    ];
    assert!(happened.iter().all(|count| *count > 0), "{figures}");
}

#[test]
fn the_lock_keeps_its_promises() {
    promises_are_kept("lock");
}

#[test]
fn the_lock_that_watches_its_parent_keeps_its_promises() {
    promises_are_kept("lock-parent");
}

#[test]
fn the_lock_that_polls_keeps_its_promises() {
    promises_are_kept("lock-poll");
}

#[test]
fn the_lock_of_one_znode_keeps_its_promises() {
    promises_are_kept("lock-single-node");
}

#[test]
fn the_read_write_lock_keeps_its_promises() {
    promises_are_kept("rwlock");
}

#[test]
fn the_semaphore_keeps_its_promises() {
    promises_are_kept("semaphore");
}

#[test]
fn the_election_keeps_its_promises() {
    promises_are_kept("election");
}

/// Seeds at which a contender once waited for ever, or lost each hold, at a follower that lags.
const AT_A_FOLLOWER_THAT_LAGS: [u64; 6] = [39, 60, 105, 235, 611, 1723];

/// Seeds at which a contender that got no lease at any server once barred all others.
const WITHOUT_A_LEASE: [u64; 2] = [50014, 50036];

#[test]
fn who_is_not_hit_comes_through_whatever_never_heals() {
    let variant = Variant {
        never_heals: true,
        ..Variant::default()
    };
    for recipe in TestedRecipe::ALL {
        let mut figures = Figures::default();
        for seed in (0..12)
            .chain(AT_A_FOLLOWER_THAT_LAGS)
            .chain(WITHOUT_A_LEASE)
        {
            let report = run_as(recipe, seed, 0, &variant);
            figures += report.figures;
            assert!(
                report.violations.is_empty(),
                "simulate --never-heals --recipe {} --seed {seed}: {:#?}",
                recipe.name,
                report.violations,
            );
        }
        println!("{}: {figures}", recipe.name);
        assert!(figures.grants > 0 && figures.expired > 0, "{figures}");
    }
}

/// Seeds at which the znode of a lost hold once barred others for ever: its session was touched by
/// handshakes that its client gave up.
const TOUCHED_BY_HANDSHAKES: [u64; 6] = [5, 14, 26, 38, 74, 83];

#[test]
fn what_is_lost_bars_nobody_for_long_however_slow_the_handshakes_are() {
    let variant = Variant {
        never_heals: true,
        ..Variant::default()
    };
    let recipe = TestedRecipe::named("lock").expect("a recipe of that name");
    for seed in TOUCHED_BY_HANDSHAKES {
        let report = run_as(recipe, seed, 0, &variant);
        assert!(
            report.violations.is_empty(),
            "simulate --never-heals --recipe lock --seed {seed}: {:#?}",
            report.violations,
        );
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for recipe in TestedRecipe::ALL {
        for seed in 0..5 {
            let (one, other) = (run(recipe, seed, 100_000), run(recipe, seed, 100_000));
            let mut entries = one.trace.entries().iter().zip(other.trace.entries());
            let differs = entries.find(|(one, other)| one != other);
            assert!(
                one.trace == other.trace,
                "{recipe:?}, seed {seed}: {differs:?}"
            );
            assert!(one.trace.entries().len() > 100, "{recipe:?}, seed {seed}");
        }
    }
}
