//! The memory of an attempt, most of which is its future.

use crate::support::*;

/// An `async fn` that is given a future keeps two copies of it, and so on for each further one.
const MAX: usize = 4_096;

#[tokio::test(start_paused = true)]
async fn future_of_an_attempt_has_at_most_four_kibibytes() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "waiter").await;
    let queue = lock(&session, "/locks/a");
    let single = single_node(&session, "/locks/b");
    let sizes = [
        size_of_val(&queue.acquire()),
        size_of_val(&queue.acquire_timeout(Duration::MAX)),
        size_of_val(&queue.try_acquire()),
        size_of_val(&single.acquire()),
        size_of_val(&single.acquire_timeout(Duration::MAX)),
        size_of_val(&single.try_acquire()),
    ];
    assert!(sizes.iter().all(|size| *size <= MAX), "{sizes:?}");
}
