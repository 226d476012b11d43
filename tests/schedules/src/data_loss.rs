//! Servers that come back without their data, or with those of a backup.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep, sleep_until};
use zookeeper_recipes_core::CreateMode;
use zookeeper_recipes_simulation::Simulation;

use crate::schedule::Schedule;
use crate::setting::Setting;

/// As [`run`], for the ledgers of a setting.
pub(crate) async fn in_setting(
    simulation: &Simulation,
    setting: &Setting,
    schedule: &Schedule,
    rng: Rng,
) {
    let ledgers = || setting.beside.iter().chain([&setting.ledger]);
    let kept: Vec<&str> = ledgers().map(|it| it.place().guarded).collect();
    let judge = Judge {
        expects: &|by| ledgers().for_each(|it| it.expect_losses(by)),
        looks: &|| ledgers().for_each(|it| it.look_at_gone(schedule.leases_last_at_most())),
        evicts: &|path| ledgers().for_each(|it| it.evict(path)),
    };
    run(simulation, schedule, &kept, rng, judge).await;
}

/// What a judge is told of a loss.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    /// The data are lost. The holds whose znodes have gone are lost by this time.
    pub(crate) expects: &'a dyn Fn(Duration),
    /// This time has come, or a later one.
    pub(crate) looks: &'a dyn Fn(),
    /// Somebody is about to delete this znode, which has come back.
    pub(crate) evicts: &'a dyn Fn(&str),
}

/// The schedule's loss of data, if there is one. The znodes `kept` are made anew if they have gone.
pub(crate) async fn run(
    simulation: &Simulation,
    schedule: &Schedule,
    kept: &[&str],
    mut rng: Rng,
    judge: Judge<'_>,
) {
    let Some(loss) = schedule.loses_data else {
        return;
    };
    let began = Instant::now();
    let faults = simulation.faults();
    let backup = match loss.backed_up_at {
        None => None,
        Some(at) => {
            sleep_until(began + at).await;
            simulation.remark("a backup is made");
            Some(faults.back_up())
        }
    };
    sleep_until(began + loss.at).await;
    let before = ephemerals(simulation);
    match backup {
        None => faults.lose_data(loss.within),
        Some(backup) => faults.restore(&backup, loss.within),
    }
    let lasts = schedule.leases_last_at_most();
    (judge.expects)(simulation.now() + lasts);
    let making = async {
        for path in kept {
            make(simulation, path).await;
        }
    };
    let deadline = async {
        // Once for the leases from before, and then for what was granted late.
        for _ in 0..2 {
            sleep(lasts).await;
            (judge.looks)();
        }
    };
    let mut returned = ephemerals(simulation);
    returned.retain(|path, created| before.get(path) != Some(created));
    let evictions = async {
        let longest = schedule.options.session_timeout.as_millis() as u64;
        let each = longest / (returned.len() as u64 + 1);
        for (path, created) in returned {
            sleep(Duration::from_millis(rng.u64(0..=each))).await;
            evict(simulation, &path, created, judge).await;
        }
    };
    tokio::join!(biased; making, deadline, evictions);
}

/// The ephemeral znodes, and the transactions that created them.
fn ephemerals(simulation: &Simulation) -> BTreeMap<String, i64> {
    let nodes = simulation.administrator().tree().into_iter();
    let ephemeral = nodes.filter(|node| node.stat.ephemeral_owner != 0);
    ephemeral.map(|node| (node.path, node.stat.czxid)).collect()
}

/// How long an operator waits before another look. A leader that falls can lose what it was told.
const PAUSE: Duration = Duration::from_millis(50);

/// Makes a znode, unless the backup has it.
async fn make(simulation: &Simulation, path: &str) {
    let administrator = simulation.administrator();
    while administrator.tree().iter().all(|node| node.path != path) {
        // It may be made since.
        let _ = administrator.create(path, b"", CreateMode::Persistent);
        sleep(PAUSE).await;
    }
}

/// An operator evicts a znode that is there again, though its owner has deleted it: its session may
/// live on, and would keep it.
async fn evict(simulation: &Simulation, path: &str, created: i64, judge: Judge<'_>) {
    while ephemerals(simulation).get(path) == Some(&created) {
        (judge.evicts)(path);
        simulation.remark(format!("somebody evicts {path}, which has come back"));
        // It may be gone by now.
        let _ = simulation.administrator().delete(path);
        sleep(PAUSE).await;
    }
}
