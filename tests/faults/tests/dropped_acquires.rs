//! Acquires by the thousand, each dropped at a random moment: nothing of them is left.
//!
//! A test binary of its own, since memory is counted for the whole process.

use std::alloc::System;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use zookeeper_client::Client;
use zookeeper_recipes_core::{Error, Hold, Recipe, Session};
use zookeeper_recipes_suite::{
    KINDS, LONG, administrator, children, eventually, in_time, server, session,
};
use zookeeper_recipes_testkit::Server;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many acquires there are before the first count, so that buffers have grown and directories
/// been made.
const WARM_UP: usize = 3_000;
const ACQUIRES: usize = 10_000;
const AT_A_TIME: usize = 16;
const SESSIONS: usize = 2;
/// A little, for buffers whose size depends on the moment, and far less than one of an acquire.
const BLOCKS: isize = ACQUIRES as isize / 100;
const BYTES: isize = 128 << 10;

/// What grows in so many rounds is a leak.
const ROUNDS: usize = 3;

/// An attempt that waits for its turn is not polled any more after this time.
const LONGEST: Duration = Duration::from_millis(16);

/// Another session holds it all the time.
const HELD: &str = "held";
/// Fought for by all.
const BUSY: &str = "busy";

/// Polls a future until a random moment and drops it then; `None` if it was not finished.
async fn dropped_at_random<T>(work: impl Future<Output = T>, dice: &mut Rng) -> Option<T> {
    let mut work = pin!(work);
    // Either decides: as many short times as long ones, or so many polls.
    let (mut polls, time) = match dice.bool() {
        true => (u32::MAX, Duration::from_micros(1 << dice.u32(..15))),
        false => (dice.u32(1..12), LONGEST),
    };
    let polled = std::future::poll_fn(|context| {
        polls -= 1;
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polls == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    tokio::time::timeout(time, polled).await.ok().flatten()
}

/// One acquire of one way, dropped. The call returns whether the acquire was under way then.
async fn acquire_and_drop(recipe: &dyn Recipe, dice: &mut Rng) -> bool {
    let way = dice.u8(..4);
    let timeout = Duration::from_millis(dice.u64(1..16));
    let acquiring = async {
        match way {
            0 => match recipe.try_acquire().await {
                Err(Error::Disconnected { .. }) => Ok(None),
                tried => tried,
            },
            1 => match recipe.acquire_timeout(timeout).await {
                Err(Error::DeadlineElapsed { .. }) => Ok(None),
                acquired => acquired.map(Some),
            },
            _ => recipe.acquire().await.map(Some),
        }
    };
    let Some(acquired) = dropped_at_random(acquiring, dice).await else {
        return true;
    };
    if let Some(hold) = acquired.expect("no attempt fails") {
        // Released, or dropped half-way through that, or just dropped.
        if dice.bool() {
            let released = dropped_at_random(hold.release(), dice).await;
            released.unwrap_or(Ok(())).expect("it is released");
        }
    }
    false
}

/// What there is of everything.
#[derive(Debug)]
struct Count {
    tasks: usize,
    blocks: isize,
    bytes: isize,
}

impl Count {
    fn take() -> Count {
        let stats = ALLOCATOR.stats();
        Count {
            tasks: Handle::current().metrics().num_alive_tasks(),
            blocks: stats.allocations as isize - stats.deallocations as isize,
            bytes: stats.bytes_allocated as isize - stats.bytes_deallocated as isize,
        }
    }

    /// True if this is not more than what was counted before.
    fn fits(&self, before: &Count) -> bool {
        self.blocks <= before.blocks + BLOCKS && self.bytes <= before.bytes + BYTES
    }
}

struct Place {
    server: Server,
    administrator: Client,
    sessions: Vec<Session>,
    holds: Vec<Hold>,
}

impl Place {
    async fn new() -> Place {
        let server = server().await;
        let connect_string = server.connect_string();
        let holder = session(&connect_string, LONG).await;
        let mut holds = Vec::new();
        for kind in KINDS {
            let hold = kind.rival_on(&holder, HELD).acquire().await;
            holds.push(hold.expect("it is free"));
        }
        Place {
            administrator: administrator(&server).await,
            sessions: join_all((0..SESSIONS).map(|_| session(&connect_string, LONG))).await,
            server,
            holds,
        }
    }

    /// Has so many acquires dropped, and says how many of them were under way then.
    async fn acquire_and_drop(&self, acquires: usize, seed: u64) -> usize {
        let left = Arc::new(AtomicUsize::new(acquires));
        let mut workers = JoinSet::new();
        for worker in 0..AT_A_TIME {
            let left = left.clone();
            let session = self.sessions[worker % SESSIONS].clone();
            let mut dice = Rng::with_seed(seed + worker as u64);
            workers.spawn(async move {
                let mut under_way = 0;
                let one_less = |left: usize| left.checked_sub(1);
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                    .is_ok()
                {
                    let kind = dice.choice(KINDS).expect("there are some");
                    let alone = format!("alone-{worker}");
                    let scenario = match dice.u8(..3) {
                        0 => HELD,
                        1 => BUSY,
                        _ => &alone,
                    };
                    let recipe = kind.on(&session, scenario);
                    let attempt = acquire_and_drop(&*recipe, &mut dice);
                    under_way += usize::from(in_time(scenario, attempt).await);
                }
                under_way
            });
        }
        workers.join_all().await.into_iter().sum()
    }

    /// Has acquires dropped, and counts what is left of them in memory.
    async fn round(&self, before: &Count) -> Count {
        let under_way = self.acquire_and_drop(ACQUIRES, 1_000).await;
        assert!(
            under_way > ACQUIRES / 3,
            "{under_way} were dropped half-way"
        );
        self.nothing_is_left().await;
        eventually("no task is left", || async {
            Count::take().tasks <= before.tasks
        })
        .await;
        let after = Count::take();
        println!("{under_way} were dropped half-way; {before:?} before, {after:?} after");
        after
    }

    /// Waits until nothing is left of them on the server.
    async fn nothing_is_left(&self) {
        let scenarios = (0..AT_A_TIME).map(|worker| format!("alone-{worker}"));
        let scenarios: Vec<String> = scenarios
            .chain([BUSY.to_owned(), HELD.to_owned()])
            .collect();
        for kind in KINDS {
            for scenario in &scenarios {
                let holders = usize::from(scenario == HELD && !self.holds.is_empty());
                eventually(scenario, || async {
                    let contenders = children(&self.administrator, &kind.directory(scenario)).await;
                    contenders.len() == holders
                })
                .await;
            }
        }
        eventually("no znode and no watch is left but the holders'", || async {
            let monitor = self.server.monitor().await.expect("the server answers");
            let holders = self.holds.len() as u64;
            monitor.ephemerals == holders && monitor.watches == holders
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_acquires_dropped_at_random_moments_leave_nothing() {
    let mut place = Place::new().await;
    place.acquire_and_drop(WARM_UP, 0).await;
    place.nothing_is_left().await;
    let mut before = Count::take();
    for round in 1.. {
        let after = place.round(&before).await;
        if after.fits(&before) {
            break;
        }
        // A buffer may grow once, when a busy machine has many requests wait in it. What leaks
        // grows each time.
        assert!(round < ROUNDS, "{before:?} before, {after:?} after");
        before = after;
    }
    for hold in place.holds.drain(..) {
        hold.release().await.expect("it is released");
    }
    place.nothing_is_left().await;
}
