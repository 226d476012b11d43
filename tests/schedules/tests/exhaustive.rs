//! Each request an acquisition and a release send × each fault × each await dropped.

use zookeeper_recipes_schedules::exhaust;
use zookeeper_recipes_suite::TestedRecipe;

fn nothing_breaks(name: &str) {
    let recipe = TestedRecipe::named(name).expect("a recipe of that name");
    let exhausted = exhaust(recipe);
    println!(
        "{name}: {} runs, {} requests",
        exhausted.runs, exhausted.requests
    );
    if let Some((case, report)) = exhausted.broken {
        panic!("{case:?}\n{}\n{:#?}", report.trace, report.violations);
    }
    assert!(exhausted.requests > 0, "there was something to disturb");
}

#[test]
fn no_fault_at_any_step_breaks_the_lock() {
    nothing_breaks("lock");
}

#[test]
fn no_fault_at_any_step_breaks_the_lock_of_one_znode() {
    nothing_breaks("lock-single-node");
}

#[test]
fn no_fault_at_any_step_breaks_the_read_write_lock() {
    nothing_breaks("rwlock");
}

#[test]
fn no_fault_at_any_step_breaks_the_semaphore() {
    nothing_breaks("semaphore");
}

#[test]
fn no_fault_at_any_step_breaks_the_election() {
    nothing_breaks("election");
}

/// They differ from the lock in what a waiter does only.
mod at_night {
    use super::*;

    #[test]
    fn no_fault_at_any_step_breaks_the_lock_that_watches_its_parent() {
        nothing_breaks("lock-parent");
    }

    #[test]
    fn no_fault_at_any_step_breaks_the_lock_that_polls() {
        nothing_breaks("lock-poll");
    }
}
