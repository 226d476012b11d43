//! The memory of an attempt, of a hold and of a waiter, and the allocations of a turn.
//!
//! A test program of its own, because allocations are counted for the whole process. The ensemble
//! is in this process, too. So each count is compared with that of the same requests without a
//! recipe.

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::{Created, ServerSession};
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, NodePath, Permission, Session};
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::simulated_session;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// An `async fn` that is given a future or a large value keeps two copies of it, and so on for each
/// further one.
const MAX_FUTURE: usize = 2_300;
const MAX_ALLOCATIONS: f64 = 3.0;
const MAX_HOLD: f64 = 3_200.0;
const MAX_WAITER: f64 = 3_800.0;

const NUMBER: usize = 200;
/// As long as a contender's name without its number.
const NAME: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-";
/// Long enough for each hold to get its loss watch.
const LONG: Duration = Duration::from_secs(20);

fn lock(session: &Session, path: &str) -> ExclusiveLock {
    ExclusiveLock::new(session, path).expect("a good path")
}

/// The allocations of each of many calls, one after the other.
async fn allocations<F: Future>(call: impl Fn() -> F) -> f64 {
    for _ in 0..10 {
        call().await;
    }
    let before = ALLOCATOR.stats().allocations;
    for _ in 0..NUMBER {
        call().await;
    }
    (ALLOCATOR.stats().allocations - before) as f64 / NUMBER as f64
}

/// The bytes of each of many values, each made for a number.
async fn bytes<T>(make: impl AsyncFn(usize) -> T) -> f64 {
    let live = || {
        let stats = ALLOCATOR.stats();
        stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
    };
    let mut values = Vec::with_capacity(2 * NUMBER);
    let mut seen = Vec::with_capacity(2);
    for half in [0..NUMBER, NUMBER..2 * NUMBER] {
        for number in half {
            values.push(make(number).await);
        }
        sleep(LONG).await;
        seen.push(live());
    }
    (seen[1] - seen[0]) / NUMBER as f64
}

async fn create(server: &ServerSession, path: String, mode: CreateMode) -> Created {
    let everyone = |permissions| Acl::new(permissions, AuthId::anyone());
    let acl = match &server.own_identity {
        // Its session alone writes to the znode of a contender.
        Some(own) if mode == CreateMode::EphemeralSequential => {
            vec![
                everyone(Permission::READ),
                Acl::new(Permission::ALL, own.clone()),
            ]
        }
        _ => vec![everyone(Permission::ALL)],
    };
    let created = server.create(path, b"service@host:123", mode, acl);
    created.await.expect("the path is free")
}

async fn check_futures(session: &Session) {
    let queue = lock(session, "/locks/a");
    let single = SingleNodeLock::new(session, "/locks/b").expect("a good path");
    let sizes = [
        size_of_val(&queue.acquire()),
        size_of_val(&queue.acquire_timeout(Duration::MAX)),
        size_of_val(&queue.try_acquire()),
        size_of_val(&single.acquire()),
        size_of_val(&single.acquire_timeout(Duration::MAX)),
        size_of_val(&single.try_acquire()),
    ];
    assert!(sizes.iter().all(|size| *size <= MAX_FUTURE), "{sizes:?}");
}

async fn check_allocations(session: &Session, server: &ServerSession) {
    let lock = lock(session, "/locks/turns");
    let of_turn = allocations(|| async {
        let hold = lock.acquire().await.expect("it is free");
        hold.release().await.expect("it is held");
    })
    .await;
    let of_requests = allocations(|| async {
        let path = format!("/locks/turns/{NAME}");
        let created = create(server, path, CreateMode::EphemeralSequential).await;
        let deleted = server.delete(&created.path).await;
        deleted.expect("it is there");
    })
    .await;
    let beside = of_turn - of_requests;
    assert!(beside <= MAX_ALLOCATIONS, "{beside} beside {of_requests}");
}

async fn check_holds(session: &Session, server: &ServerSession) {
    let of_hold = bytes(async |number| {
        let lock = lock(session, &format!("/locks/held/{number}"));
        lock.acquire().await.expect("it is free")
    })
    .await;
    let of_requests = bytes(async |number| {
        let directory = format!("/locks/make/{number}");
        create(server, directory.clone(), CreateMode::Container).await;
        let path = format!("{directory}/{NAME}");
        let created = create(server, path, CreateMode::EphemeralSequential).await;
        server
            .get_and_keep_watch(&created.path)
            .await
            .expect("it is there")
    })
    .await;
    let beside = of_hold - of_requests;
    assert!(beside <= MAX_HOLD, "{beside} beside {of_requests}");
}

async fn check_waiters(session: &Session, server: &ServerSession) {
    let _holder = lock(session, "/locks/queue").acquire().await;
    let of_waiter = bytes(async |_| {
        let lock = lock(session, "/locks/queue");
        (tokio::spawn(async move { lock.acquire().await.map(drop) }),)
    })
    .await;
    create(server, "/locks/watch".to_owned(), CreateMode::Container).await;
    let of_requests = bytes(async |_| {
        let path = format!("/locks/watch/{NAME}");
        let created = create(server, path, CreateMode::EphemeralSequential).await;
        // The simulation remembers each list.
        server.list("/locks/watch").await.expect("it is there");
        let (own, other) = (
            server.get_and_keep_watch(&created.path).await,
            server.get_and_keep_watch(&created.path).await,
        );
        (own.expect("it is there"), other.expect("it is there"))
    })
    .await;
    let beside = of_waiter - of_requests;
    assert!(beside <= MAX_WAITER, "{beside} beside {of_requests}");
}

#[tokio::test(start_paused = true)]
async fn turn_hold_and_waiter_take_little_beside_their_requests() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "client").await;
    let path = NodePath::new("/locks").expect("a good path");
    let server: Arc<ServerSession> = session.server(&path).await.expect("a session");
    check_futures(&session).await;
    create(&server, "/locks".to_owned(), CreateMode::Persistent).await;
    check_allocations(&session, &server).await;
    create(&server, "/locks/make".to_owned(), CreateMode::Persistent).await;
    check_holds(&session, &server).await;
    check_waiters(&session, &server).await;
}
