//! The search for a schedule that breaks a promise.

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Path};

/// A schedule that breaks one of these promises.
///
/// If there is none, the search has seen all schedules, and each of these.
///
/// # Panics
///
/// If no schedule breaks a promise, and one of `seen` was not seen.
pub fn violation<M>(
    name: &str,
    model: M,
    promises: &[&'static str],
    seen: &[&'static str],
) -> Option<Path<M::State, M::Action>>
where
    M: Model + Send + Sync + 'static,
    M::State: std::fmt::Debug + std::hash::Hash + Clone + PartialEq + Send + Sync,
    M::Action: Clone + PartialEq + Send + Sync,
{
    let began = Instant::now();
    let any = promises.iter().copied().collect();
    let checker = model
        .checker()
        .finish_when(HasDiscoveries::AnyOf(any))
        .spawn_bfs()
        .join();
    println!(
        "{name}: {} states, {:.1} s",
        checker.unique_state_count(),
        began.elapsed().as_secs_f64()
    );
    for promise in promises {
        if let Some(path) = checker.discovery(promise) {
            println!("{promise}: {:?}", path.last_state());
            return Some(path);
        }
    }
    for seen in seen {
        assert!(checker.discovery(seen).is_some(), "not seen: {seen}");
    }
    None
}
