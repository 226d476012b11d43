//! A job at most once in each time slot, on a simulated ensemble.

mod claims;
mod clocks;
mod runs;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zookeeper_recipes_lock::{
    Again, JobRecord, OncePerSlot, OncePerSlotOptions, SlotClaim, SlotRun, SlotState,
};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::simulated_session;

const PATH: &str = "/jobs/report";
const MINUTE: Duration = Duration::from_secs(60);
const SLOT: Duration = Duration::from_secs(3_600);

/// A clock that a test sets, in seconds after noon of some day.
#[derive(Clone)]
struct Clock(Arc<AtomicI64>);

impl Clock {
    fn at(seconds: i64) -> Clock {
        Clock(Arc::new(AtomicI64::new(seconds)))
    }

    fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::SeqCst);
    }

    fn now(&self) -> SystemTime {
        let seconds = 1_774_008_000 + self.0.load(Ordering::SeqCst);
        UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs())
    }
}

/// Options by which the clock may differ from the ensemble's as it likes.
fn options(clock: &Clock) -> OncePerSlotOptions {
    let clock = clock.clone();
    OncePerSlotOptions::new()
        .clock(move || clock.now())
        .clock_may_differ(Duration::MAX)
}

/// The job in a process with this clock.
async fn job(simulation: &Simulation, process: &str, clock: &Clock, again: Again) -> OncePerSlot {
    let session = simulated_session(simulation, process).await;
    let options = options(clock).again(again);
    OncePerSlot::with_options(&session, PATH, SLOT, options).expect("a good job")
}

/// Runs a job that is done at once. True if it ran.
async fn ran(job: &OncePerSlot) -> bool {
    let ran = job.run(|_| async { Ok::<_, ()>(()) }).await;
    ran.expect("the session lives").own().is_some()
}

/// Claims a slot that is free.
async fn claimed(job: &OncePerSlot) -> SlotClaim {
    let claim = job.begin().await.expect("the session lives");
    claim.own().expect("the slot is free")
}

/// Claims a slot that is free, and records the start.
async fn started(job: &OncePerSlot) -> SlotRun {
    let run = claimed(job).await.start().await;
    run.expect("it is held")
}

async fn recorded(job: &OncePerSlot) -> JobRecord {
    let recorded = job.recorded().await.expect("the session lives");
    recorded.expect("something is recorded")
}

/// The state of the last run. `None` if there was none.
async fn last_state(job: &OncePerSlot) -> Option<SlotState> {
    recorded(job).await.last_run.map(|run| run.state)
}
