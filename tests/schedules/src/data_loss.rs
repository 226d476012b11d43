//! Servers that come back without their data, or with those of a backup.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep, sleep_until};
use zookeeper_recipes_core::CreateMode;
use zookeeper_recipes_simulation::Simulation;

use crate::invariants::anew;
use crate::setting::Setting;

/// As [`run`]. What has gone is looked at in each ledger, and what guarded writes are for is made anew.
pub(crate) async fn in_setting(setting: &Setting, rng: Rng) {
    let kept: Vec<&str> = setting.ledgers().map(|it| it.place().guarded).collect();
    let lasts = setting.schedule.leases_last_at_most();
    let looks = || {
        for ledger in setting.ledgers() {
            ledger.look(|state| anew::at_deadline(state, ledger.now(), lasts));
        }
    };
    run(setting, &kept, looks, rng).await;
}

/// The schedule's loss of data, if there is one. The znodes `kept` are made anew if they have gone.
/// `looks` is called when the holds are lost whose znodes have gone, or later.
pub(crate) async fn run(setting: &Setting, kept: &[&str], looks: impl Fn(), mut rng: Rng) {
    let (simulation, schedule) = (&setting.simulation, &setting.schedule);
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
    let lost_by = simulation.now() + lasts;
    setting.ledgers().for_each(|it| it.expect_losses(lost_by));
    let making = async {
        for path in kept {
            make(simulation, path).await;
        }
    };
    let deadline = async {
        // Once for the leases from before, and then for what was granted late.
        for _ in 0..2 {
            sleep(lasts).await;
            looks();
        }
    };
    let mut returned = ephemerals(simulation);
    returned.retain(|path, created| before.get(path) != Some(created));
    let evictions = async {
        let longest = schedule.options.session_timeout.as_millis() as u64;
        let each = longest / (returned.len() as u64 + 1);
        for (path, created) in returned {
            sleep(Duration::from_millis(rng.u64(0..=each))).await;
            evict(setting, &path, created).await;
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
async fn evict(setting: &Setting, path: &str, created: i64) {
    let simulation = &setting.simulation;
    while ephemerals(simulation).get(path) == Some(&created) {
        setting.ledgers().for_each(|it| it.evict(path));
        simulation.remark(format!("somebody evicts {path}, which has come back"));
        // It may be gone by now.
        let _ = simulation.administrator().delete(path);
        sleep(PAUSE).await;
    }
}
