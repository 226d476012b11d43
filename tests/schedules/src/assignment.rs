//! Workers of an assignment: one seed, from its beginning to its end.
//!
//! Each partition has a ledger of its own, as a lock under test has: exclusion, tokens, order, and
//! each loss before the deletion of the znode are judged for each of them.

mod fleet;
mod meddling;
mod rest;
mod traits;
mod worker;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::sleep_until;
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::LOCK;

use crate::run::{Report, Variant, begin_guarded, in_a_world, observed, report};
use crate::schedule::{Crowd, Schedule};
use crate::setting::Setting;
use crate::{data_loss, pairs};
use fleet::{Fleet, PLACES};

/// Runs one seed of the assignment.
pub(crate) fn run(seed: u64, trace_limit: usize, variant: &Variant) -> Report {
    in_a_world(|| async move {
        let mut schedule = variant.schedule(&LOCK, seed, trace_limit);
        schedule.crowd = Crowd::default();
        scenario(schedule, Rng::with_seed(!seed)).await
    })
}

async fn scenario(schedule: Schedule, mut rng: Rng) -> Report {
    let simulation = Simulation::new(schedule.options.clone());
    let places = PLACES.map(|place| (LOCK, place));
    let ledgers = observed(&simulation, &places);
    let first = ledgers[0].clone();
    simulation.on_fault(move |fault| first.met(fault));
    for place in PLACES {
        begin_guarded(&simulation, place);
    }
    let setting = Setting::new(&simulation, schedule, &ledgers);
    let fleet = Fleet::new(setting, &ledgers, &mut rng);
    let workers = workers(&fleet, &mut rng);
    let judged = async {
        meddle(&fleet, rng).await;
        fleet.judge().await;
    };
    let all = async {
        tokio::select! {
            biased;
            _ = async { tokio::join!(biased; judged, workers) } => {}
            () = fleet.until_broken() => {}
        }
    };
    fleet.setting.within_limits(all).await;
    if fleet.is_clean() && fleet.setting.schedule.lasting.is_none() {
        fleet.leaves_nothing().await;
    }
    drop(fleet);
    let mut report = report(&simulation, &ledgers);
    // Each ledger counts each session.
    report.figures.expired /= ledgers.len() as u64;
    report
}

/// All workers, to their ends. A worker that a fault hits for good has none. Their seeds are drawn
/// at once.
fn workers<'a>(fleet: &'a Fleet<'a>, rng: &mut Rng) -> impl Future + use<'a> {
    let hit = (0..fleet.hit).map(crate::lasting_faults::LastingFaults::process);
    let hit: Vec<_> = hit.map(|name| (name, rng.fork())).collect();
    let names = fleet.workers.iter().cloned();
    let healthy: Vec<_> = names.map(|name| (name, rng.fork())).collect();
    let run = |(name, rng)| worker::run(fleet, name, rng);
    let hit = join_all(hit.into_iter().map(run));
    let healthy = join_all(healthy.into_iter().map(run));
    async move {
        tokio::select! {
            biased;
            _ = healthy => {}
            () = async { drop(hit.await); std::future::pending().await } => {}
        }
    }
}

/// Has things go wrong until the quiet begins.
async fn meddle(fleet: &Fleet<'_>, mut rng: Rng) {
    let setting = &fleet.setting;
    let meddling = meddling::run(fleet, rng.fork());
    let pairs = pairs::run(setting, rng.fork());
    let quiet = async {
        sleep_until(setting.quiet_from).await;
        setting.calms_down();
    };
    let loss = data_loss::in_setting(setting, rng.fork());
    tokio::join!(biased; meddling, pairs, setting.lasting_faults(), loss, quiet);
}
