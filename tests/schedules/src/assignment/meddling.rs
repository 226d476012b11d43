//! What others do meanwhile: operators with orders, and with a shell.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{sleep, sleep_until};
use zookeeper_recipes_assignment::{AssignmentOperator, Partitions};
use zookeeper_recipes_core::{Error, SessionId};
use zookeeper_recipes_simulation::Administrator;

use super::fleet::{Fleet, PATH};
use super::traits::PARTITIONS;
use crate::interference;
use crate::process;

/// Records of the partitions that a person may write by mistake.
const BROKEN: [&[u8]; 3] = [
    b"somebody was here",
    b"zookeeper-recipes partitions 1 by-hand 0\n1 - tenant/7\n",
    b"zookeeper-recipes partitions 1 by-hand 7\n1 - p0\n",
];

/// What is no plan.
const NO_PLAN: &[u8] = b"somebody was here";

/// A plan that gives all partitions to one worker.
const GREEDY: &[u8] = b"zookeeper-recipes plan 1 1 \nown p0\nown p1\nown p2\nown p3\nown p4\n";

/// A plan by which a worker gives all partitions away.
const GENEROUS: &[u8] =
    b"zookeeper-recipes plan 1 1 \ngive p0\ngive p1\ngive p2\ngive p3\ngive p4\n";

/// Meddles until the quiet begins, and then gives the orders that remain. No late request repeats one.
pub(crate) async fn run(fleet: &Fleet<'_>, mut rng: Rng) {
    let setting = &fleet.setting;
    let mut of_shell = rng.fork();
    let shell = with_a_shell(fleet, &mut of_shell);
    let orders = async {
        let process = setting.simulation.process("operator");
        process
            .while_awake(async {
                let session = process::open(setting, &process).await;
                let operator = AssignmentOperator::new(&session, PATH).expect("a good path");
                let ordered = async {
                    // Without a record of partitions, orders are refused.
                    operator.set_partitions(fleet.traits.recorded()).await?;
                    while !setting.is_quiet() {
                        let pause = Duration::from_millis(rng.u64(100..=8_000));
                        setting.pause_for(pause).await;
                        match order(fleet, &operator, &mut rng).await {
                            // The record has gone with the data. The leader writes it again.
                            Err(Error::InvalidInput(_))
                                if setting.schedule.loses_data.is_some() => {}
                            ordered => ordered?,
                        }
                    }
                    give_the_last(fleet, &operator).await
                };
                if let Err(error) = ordered.await {
                    let text = format!("{error:?}");
                    setting.violated("an order is given", text);
                }
                session.close().await;
            })
            .await;
    };
    let shell = async {
        tokio::select! {
            biased;
            () = sleep_until(setting.quiet_from) => {}
            () = shell => {}
        }
    };
    tokio::join!(biased; orders, shell);
}

async fn order(
    fleet: &Fleet<'_>,
    operator: &AssignmentOperator,
    rng: &mut Rng,
) -> Result<(), Error> {
    let worker = &fleet.workers[rng.usize(..fleet.workers.len())];
    let partition = PARTITIONS[rng.usize(..PARTITIONS.len())];
    match rng.u8(..8) {
        0 => operator.drain(worker).await,
        1 => operator.undrain(worker).await,
        2 => operator.pin(partition, worker).await,
        3 => operator.unpin(partition).await,
        4 => operator.freeze().await,
        5 => operator.thaw().await,
        6 => {
            let some = PARTITIONS.into_iter().filter(|_| rng.u8(..4) > 0);
            // No partitions are no good input.
            let some = Partitions::named(some.chain([PARTITIONS[0]]).collect::<BTreeSet<_>>());
            operator.set_partitions(some).await
        }
        _ => Ok(()),
    }
}

async fn give_the_last(fleet: &Fleet<'_>, operator: &AssignmentOperator) -> Result<(), Error> {
    // The record may have gone with the data, and orders are refused without one.
    operator.set_partitions(fleet.traits.recorded()).await?;
    operator.thaw().await?;
    for (worker, about) in &fleet.traits.workers {
        match about.drained {
            true => operator.drain(worker).await?,
            false => operator.undrain(worker).await?,
        }
    }
    for (partition, about) in &fleet.traits.partitions {
        match &about.worker {
            Some(worker) => operator.pin(partition, worker).await?,
            None => operator.unpin(partition).await?,
        }
    }
    Ok(())
}

/// Deletes contenders, ends sessions, and writes or deletes plans, as the schedule has it.
async fn with_a_shell(fleet: &Fleet<'_>, rng: &mut Rng) {
    let setting = &fleet.setting;
    let administrator = setting.simulation.administrator();
    let interference = setting.schedule.interference;
    loop {
        sleep(Duration::from_millis(rng.u64(20..=2_000))).await;
        match rng.u8(..8) {
            0 if interference.deletes_contenders > 0 => delete(fleet, &administrator, rng),
            1 if interference.ends_sessions > 0 => {
                if let Some((_, session)) = some(&administrator, &["locks", "leader"], rng) {
                    interference::end(setting, session);
                }
            }
            2 if interference.writes_to_contenders > 0 => {
                if let Some((path, _)) = some(&administrator, &["plan"], rng) {
                    let data = [NO_PLAN, GREEDY, GENEROUS][rng.usize(..3)];
                    fleet.remark(format!("somebody writes to {path}"));
                    // It may be gone by now.
                    let _ = administrator.set_data(&path, data);
                }
            }
            3 if interference.makes_other_children > 0 => {
                if let Some((path, _)) = some(&administrator, &["plan"], rng) {
                    fleet.remark(format!("somebody deletes {path}"));
                    let _ = administrator.delete(&path);
                }
            }
            // Once: no worker begins until the record is written again.
            4 if interference.writes_to_contenders > 0
                && !fleet.has_broken_record.swap(true, Ordering::Relaxed) =>
            {
                let record = BROKEN[rng.usize(..BROKEN.len())];
                fleet.remark("somebody writes another record of the partitions");
                // There may be none yet.
                let _ = administrator.set_data(&format!("{PATH}/partitions"), record);
            }
            5 if interference.reaps_directories > 0 => drop(administrator.reap_containers()),
            _ => {}
        }
    }
}

/// Deletes a contender for a partition or for the leadership.
fn delete(fleet: &Fleet<'_>, administrator: &Administrator, rng: &mut Rng) {
    let Some((path, _)) = some(administrator, &["locks", "leader"], rng) else {
        return;
    };
    for ledger in fleet.ledgers {
        if path.starts_with(ledger.place().path) {
            ledger.delete_by_hand(&path);
        }
    }
    fleet.remark(format!("somebody deletes {path}"));
    // It may be gone by now.
    let _ = administrator.delete(&path);
}

/// A znode without children below one of these directories, with its owner.
fn some(
    administrator: &Administrator,
    directories: &[&str],
    rng: &mut Rng,
) -> Option<(String, SessionId)> {
    let is_below = |path: &str| {
        let rest = path.strip_prefix(PATH).and_then(|it| it.strip_prefix('/'));
        let below = rest.and_then(|it| it.split_once('/'));
        below.is_some_and(|(directory, _)| directories.contains(&directory))
    };
    let is_plan = |path: &str| path.starts_with(&format!("{PATH}/plan/"));
    let tree = administrator.tree().into_iter();
    let found = tree.filter(|node| is_below(&node.path));
    let found = found.filter(|node| node.stat.ephemeral_owner != 0 || is_plan(&node.path));
    let found: Vec<_> = found
        .map(|node| (node.path, SessionId(node.stat.ephemeral_owner)))
        .collect();
    rng.choice(found)
}
