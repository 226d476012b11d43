//! The memory of an overview.

use std::alloc::System;

use futures_util::future::join_all;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, Permission};
use zookeeper_recipes_overview::Overview;
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::simulated_session;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What the page of the crate says.
const QUEUE: usize = 256;
const CONTENDER: usize = 128;

/// The bytes that an overview of these locks gives back, each with so many contenders.
async fn bytes_of(locks: usize, contenders: usize) -> usize {
    let simulation = Simulation::with(|it| it.trace_limit = 0);
    let administrator = simulation.administrator();
    let one = simulation
        .process("one")
        .connect()
        .await
        .expect("a session opens");
    let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    for lock in 0..locks {
        let path = format!("/{lock:06}");
        let created = administrator.create(&path, b"", CreateMode::Persistent);
        created.expect("it is new");
        let path = format!("{path}/_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-");
        let mode = CreateMode::EphemeralSequential;
        let creates = (0..contenders).map(|_| one.create(&path, b"owner", mode, &everyone));
        join_all(creates.collect::<Vec<_>>()).await;
    }
    let viewer = simulated_session(&simulation, "viewer").await;
    let overview = Overview::below(&viewer, "/").await.expect("a look");
    assert_eq!(overview.queues().len(), locks);
    let region = Region::new(ALLOCATOR);
    drop(overview);
    region.change().bytes_deallocated
}

#[tokio::test(start_paused = true)]
async fn queue_and_contender_cost_what_the_page_says() {
    const NAME: usize = 55;
    let queues = bytes_of(1000, 1).await / 1000;
    let contenders = bytes_of(1, 1000).await / 1000;
    println!("{queues} bytes for a queue with one contender, {contenders} for a contender");
    assert!(contenders < CONTENDER + NAME, "{contenders}");
    assert!(queues < QUEUE + CONTENDER + NAME, "{queues}");
}
