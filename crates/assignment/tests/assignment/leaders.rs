//! Leaders that come and go: only the present one writes plans.

use zookeeper_recipes_assignment::SessionId;

use crate::support::*;

const LATE: Duration = Duration::from_secs(1);

/// The number at the end of a candidate's name.
fn number(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/app/queues/leader/")?;
    name.get(name.len() - 10..)
}

/// The sessions that wrote a plan, and those that led at that moment.
fn writers(history: &[Committed]) -> Vec<(Option<SessionId>, Option<SessionId>)> {
    let mut candidates: BTreeMap<&str, SessionId> = BTreeMap::new();
    let mut writers = Vec::new();
    for committed in history {
        match &committed.change {
            Change::Created {
                path,
                ephemeral_owner: Some(owner),
                ..
            } => {
                if let Some(number) = number(path) {
                    candidates.insert(number, *owner);
                }
            }
            Change::Deleted { path } => {
                if let Some(number) = number(path) {
                    candidates.remove(number);
                }
            }
            Change::DataSet { path, .. } if path.starts_with("/app/queues/plan/") => {
                let leader = candidates.values().next().copied();
                writers.push((committed.session, leader));
            }
            _ => {}
        }
    }
    writers
}

#[tokio::test(start_paused = true)]
async fn leader_whose_znode_is_deleted_writes_no_plan() {
    let mut fleet = Fleet::of(6);
    fleet.start_all(&["a", "b", "c"]).await;
    let operator = fleet.operator().await;
    let administrator = fleet.simulation.administrator();
    let faults = fleet.simulation.faults();
    for _ in 0..6 {
        // The plan of the leader is under way for so long that the next leader comes meanwhile.
        let late = Fault::new(FaultKind::RequestLate(LATE)).on(RequestKind::Transact);
        faults.inject(late.under("/app/queues/plan/"));
        operator.drain("b").await.expect("open");
        while faults.waiting() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let mut candidates = administrator.children("/app/queues/leader");
        candidates.sort_by_key(|name| name[name.len() - 10..].to_owned());
        let leader = format!("/app/queues/leader/{}", candidates[0]);
        administrator.delete(&leader).expect("it exists");
        fleet.balanced(&["a", "c"]).await;
        operator.undrain("b").await.expect("open");
        fleet.balanced(&["a", "b", "c"]).await;
        // The late plan arrives, and the former leader campaigns again.
        sleep(LATE * 5).await;
    }
    let writers = writers(&fleet.simulation.history());
    assert!(writers.len() > 12, "{writers:?}");
    let by_another = writers.iter().find(|(writer, leader)| writer != leader);
    assert!(by_another.is_none(), "{by_another:?}");
}

#[tokio::test(start_paused = true)]
async fn plan_that_is_deleted_is_written_again_for_a_worker_that_needs_it() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a", "b"]).await;
    let administrator = fleet.simulation.administrator();
    // The process of `b` starts again before its session has expired, and finds no plan.
    fleet.kill("b");
    administrator
        .delete("/app/queues/plan/b")
        .expect("it exists");
    fleet.start("b").await;
    fleet.balanced(&["a", "b"]).await;
}

/// Nothing changes that the leader watches: the worker has not acquired yet.
#[tokio::test(start_paused = true)]
async fn plan_that_is_deleted_while_a_partition_moves_is_written_again() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a"]).await;
    fleet.options = AssignmentOptions::new().warm(|_| pending());
    fleet.start("b").await;
    let (administrator, plan) = (fleet.simulation.administrator(), "/app/queues/plan/b");
    let exists = || administrator.tree().iter().any(|node| node.path == plan);
    fleet.until("planned", |_| exists()).await;
    administrator.delete(plan).expect("it exists");
    // The session timeout, and time for a plan.
    sleep(Duration::from_secs(6 + 1)).await;
    assert!(exists());
}
