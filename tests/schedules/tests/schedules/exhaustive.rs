//! Each request an acquisition and a release send × each fault × each await dropped.

use zookeeper_recipes_schedules::exhaust;
use zookeeper_recipes_suite::{ELECTION, LOCK, LOCK_OF_ONE_ZNODE, RWLOCK, SEMAPHORE, TestedRecipe};

fn nothing_breaks(recipe: TestedRecipe, one_in: u64) {
    let exhausted = exhaust(recipe, one_in);
    println!(
        "{}: {} runs, {} requests",
        recipe.name, exhausted.runs, exhausted.requests
    );
    if let Some((case, report)) = exhausted.broken {
        panic!("{case:?}\n{}\n{:#?}", report.trace, report.violations);
    }
    assert!(exhausted.requests > 0, "there was something to disturb");
    let mut unmet = exhausted.met;
    unmet.retain(|_, faults| *faults == 0);
    assert!(unmet.is_empty(), "no fault met these drops: {unmet:?}");
}

/// In the gate, one in so many pairs of a fault and a dropped await. All single ones run.
const ONE_IN: u64 = 5;

#[test]
fn no_fault_at_any_step_breaks_the_lock() {
    nothing_breaks(LOCK, ONE_IN);
}

#[test]
fn no_fault_at_any_step_breaks_the_lock_of_one_znode() {
    nothing_breaks(LOCK_OF_ONE_ZNODE, ONE_IN);
}

#[test]
fn no_fault_at_any_step_breaks_the_read_write_lock() {
    nothing_breaks(RWLOCK, ONE_IN);
}

#[test]
fn no_fault_at_any_step_breaks_the_semaphore() {
    nothing_breaks(SEMAPHORE, ONE_IN);
}

#[test]
fn no_fault_at_any_step_breaks_the_election() {
    nothing_breaks(ELECTION, ONE_IN);
}

mod at_night {
    use super::*;

    #[test]
    fn no_pair_of_a_fault_and_a_dropped_await_breaks_a_recipe() {
        std::thread::scope(|scope| {
            for recipe in TestedRecipe::ALL {
                scope.spawn(move || nothing_breaks(recipe, 1));
            }
        });
    }
}
