//! A session that has used many paths, and has dropped an attempt at each, keeps nothing of them, and
//! neither does the server.
//!
//! A test binary of its own, since memory is counted for the whole process. The server is another
//! process. `ZOOKEEPER_RECIPES_PATHS` sets the number of paths, such as 1,000,000.

use std::alloc::System;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::Session;
use zookeeper_recipes_lock::Locks;
use zookeeper_recipes_suite::{
    KINDS, PATIENCE, TICK, dropped_after, eventually, in_time, number, server_with, session,
};
use zookeeper_recipes_testkit::{Server, ServerOptions};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The paths before the first count.
const FIRST: u64 = 1_000;
/// The paths after it, unless the environment gives another number.
const DEFAULT: u64 = 10_000;
const AT_A_TIME: usize = 200;

/// For buffers whose size depends on the moment. An entry in a map for each path is far more.
const TOLERANCE: isize = 192 << 10;

/// A busy machine can pause for a minute while a million paths are used.
const SESSION: Duration = Duration::from_secs(600);

/// The number of znodes may differ by the session's own.
const ZNODES: u64 = 2;

/// The server's heap. It has all paths of the last seconds, until it removes their containers.
const HEAP_MEBIBYTES: u32 = 256;
/// The heap for more paths than usual, which may come faster than the server removes them.
const LARGE_HEAP_MEBIBYTES: u32 = 3_072;

/// How many bytes are allocated now.
fn live() -> isize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Acquires and releases at each of these paths once, by a recipe of its own each time, and by the
/// lock of the path's name. An attempt before that is dropped after one to four polls, and an attempt
/// of another session that waits behind it after four to eleven milliseconds.
async fn use_paths(session: &Session, other: &Session, locks: &Locks, paths: std::ops::Range<u64>) {
    let next = Arc::new(AtomicU64::new(paths.start));
    let mut workers = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (session, other) = (session.clone(), other.clone());
        let locks = locks.clone();
        let (next, end) = (next.clone(), paths.end);
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    break;
                }
                let name = format!("{number:09}");
                let kind = KINDS[number as usize % KINDS.len()];
                let recipe = kind.on(&session, &name);
                let lock = locks.lock(&name).expect("a good name");
                let turn = async {
                    let polls = Some(1 + number as usize % 4);
                    drop(dropped_after(polls, recipe.acquire(), &mut 0).await);
                    let hold = recipe.acquire().await.expect("it is free");
                    let rival = kind.rival_on(&other, &name);
                    let patience = Duration::from_millis(4 + number % 8);
                    drop(timeout(patience, rival.acquire()).await);
                    let other = lock.acquire().await.expect("it is free");
                    hold.release().await.expect("it is released");
                    other.release().await.expect("it is released");
                };
                in_time(kind.name, turn).await;
            }
        });
    }
    workers.join_all().await;
}

/// The least number of live bytes within a while, once no task is left but these.
async fn settled(own_tasks: usize, most: isize) -> isize {
    eventually("no task is left", async || tasks() <= own_tasks).await;
    let mut least = live();
    let began = Instant::now();
    while least > most && began.elapsed() < Duration::from_secs(5) {
        sleep(Duration::from_millis(50)).await;
        least = least.min(live());
    }
    least
}

async fn znodes(server: &Server) -> u64 {
    server.monitor().await.expect("the server answers").znodes
}

/// Waits until the server has removed the containers, for as long as their number falls.
async fn until_gone(server: &Server, before: u64) {
    let (mut fewest, mut since) = (u64::MAX, Instant::now());
    loop {
        let now = znodes(server).await;
        if now <= before + ZNODES {
            return;
        }
        if now < fewest {
            (fewest, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "{now} znodes, {before} before");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_keeps_no_memory_for_paths_that_it_has_used_and_attempts_that_were_dropped() {
    let paths = number("ZOOKEEPER_RECIPES_PATHS").unwrap_or(DEFAULT);
    let options = ServerOptions::new()
        .tick_time(TICK)
        .heap_mebibytes(match paths > DEFAULT {
            true => LARGE_HEAP_MEBIBYTES,
            false => HEAP_MEBIBYTES,
        })
        .max_session_timeout(SESSION)
        .container_check_interval(Duration::from_secs(1))
        // The default is a limit on how many go in a minute.
        .system_property("znode.container.maxPerMinute", "100000000");
    let server = server_with(options).await;
    let other = session(&server, SESSION).await;
    let session = session(&server, SESSION).await;
    let nodes = znodes(&server).await;
    let own_tasks = tasks();
    let locks = Locks::new(&session, "/names").expect("a good path");

    use_paths(&session, &other, &locks, 0..FIRST).await;
    let before = settled(own_tasks, 0).await;
    let began = Instant::now();
    use_paths(&session, &other, &locks, FIRST..FIRST + paths).await;
    let took = began.elapsed();
    let after = settled(own_tasks, before + TOLERANCE).await;
    println!("{paths} paths in {took:?}: {before} bytes before, {after} bytes after");
    assert!(
        after <= before + TOLERANCE,
        "{before} bytes before, {after} bytes after {paths} paths"
    );
    until_gone(&server, nodes).await;
    println!("{:?} until the server had none of them", began.elapsed());
    session.close().await;
}
