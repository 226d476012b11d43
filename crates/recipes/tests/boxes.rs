//! What it takes to begin: a method of a recipe allocates nothing, one of `dyn Recipe` one box.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use zookeeper_recipes::{
    ConnectOptions, ExclusiveLock, LeaderElection, Recipe, RwLock, Semaphore, Session,
    SingleNodeLock,
};
use zookeeper_recipes_simulation::Simulation;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The allocations and the bytes of a future that is never polled.
fn begins<F>(begin: impl FnOnce() -> F) -> (usize, usize) {
    let region = Region::new(ALLOCATOR);
    let future = begin();
    let change = region.change();
    let bytes = change.bytes_allocated + size_of_val(&future);
    drop(future);
    (change.allocations, bytes)
}

#[tokio::test(start_paused = true)]
async fn futures_are_boxed_once_and_only_behind_the_trait() {
    let simulation = Simulation::default();
    let session = Session::open(simulation.ensemble("one"), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let lock = ExclusiveLock::new(&session, "/lock").expect("a good path");
    let single = SingleNodeLock::new(&session, "/single").expect("a good path");
    let rwlock = RwLock::new(&session, "/rwlock").expect("a good path");
    let semaphore = Semaphore::new(&session, "/semaphore", 5).expect("a good path");
    let permits = semaphore.permits(3).expect("there are as many");
    let election = LeaderElection::new(&session, "/leader", "one").expect("a good path");

    let own = [
        begins(|| lock.acquire()),
        begins(|| single.acquire()),
        begins(|| rwlock.read().acquire()),
        begins(|| rwlock.write().acquire()),
        begins(|| semaphore.acquire()),
        begins(|| permits.acquire()),
        begins(|| election.acquire()),
    ];
    let recipes: [&dyn Recipe; 7] = [
        &lock,
        &single,
        rwlock.read(),
        rwlock.write(),
        &semaphore,
        &permits,
        &election,
    ];
    for ((own, own_bytes), recipe) in own.into_iter().zip(recipes) {
        let (boxed, boxed_bytes) = begins(|| recipe.acquire());
        println!("{recipe:?}: {own_bytes} bytes, behind the trait {boxed_bytes}");
        assert_eq!((own, boxed), (0, 1), "{recipe:?}");
        assert_eq!(begins(|| recipe.try_acquire()).0, 1, "{recipe:?}");
        assert_eq!(begins(|| recipe.contenders()).0, 1, "{recipe:?}");
    }
}
