//! The health of sessions and candidates, on a simulated ensemble.

use crate::*;

const SECOND: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(5);

async fn candidate(process: &SimulatedProcess) -> LeaderElection {
    let session = Session::open(process.ensemble(), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    LeaderElection::new(&session, "/leader", process.name()).expect("a good path")
}

#[tokio::test(start_paused = true)]
async fn leader_that_keeps_what_it_has_lost_is_unhealthy_after_the_grace() {
    let simulation = Simulation::default();
    let process = simulation.process("node-7");
    let election = candidate(&process).await;
    let idle = election.health(GRACE);
    assert!(idle.is_healthy() && !idle.leads);
    assert_eq!(idle.to_string(), "does not lead");
    let leadership = election.acquire().await.expect("nobody leads");
    assert_eq!(election.health(GRACE).to_string(), "leads");
    assert_eq!(leadership.view().kept_after_loss(), None);

    process.partition(3600 * SECOND);
    leadership.lost().await;
    sleep(GRACE).await;
    let late = election.health(GRACE);
    assert!(late.is_healthy() && !late.leads, "{late:?}");
    assert!(
        late.overdue
            .is_some_and(|overdue| overdue <= GRACE && overdue >= GRACE - SECOND)
    );
    sleep(SECOND).await;
    let unhealthy = election.clone().health(GRACE);
    assert!(!unhealthy.is_healthy(), "{unhealthy:?}");
    assert_eq!(unhealthy.overdue, leadership.view().kept_after_loss());
    assert!(unhealthy.to_string().contains("keeps it"), "{unhealthy}");

    // Once it is dropped, the candidate is healthy, though no server answers.
    drop(leadership);
    let healthy = election.health(GRACE);
    assert!(
        healthy.is_healthy() && healthy.overdue.is_none(),
        "{healthy:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn leader_that_resigns_is_healthy() {
    let simulation = Simulation::default();
    let election = candidate(&simulation.process("node-7")).await;
    let leadership = election.acquire().await.expect("nobody leads");
    let view = leadership.view();
    leadership.release().await.expect("it leads");
    sleep(60 * SECOND).await;
    assert!(election.health(Duration::ZERO).is_healthy());
    assert_eq!(view.kept_after_loss(), None);
}

#[tokio::test(start_paused = true)]
async fn session_reports_its_lease_and_the_last_answer() {
    let simulation = Simulation::default();
    let process = simulation.process("node-7");
    let election = candidate(&process).await;
    let session = election.session();
    sleep(10 * SECOND).await;
    let timeout = session.timeout().expect("it is open");
    let well = session.health();
    assert!(!well.lease_left.is_zero(), "{well:?}");
    assert!(
        well.last_answer.is_some_and(|ago| ago <= timeout / 10),
        "{well:?}"
    );

    process.partition(3600 * SECOND);
    sleep(timeout).await;
    let silent = session.health();
    assert!(
        !session.is_connected() && silent.lease_left.is_zero(),
        "{silent:?}"
    );
    assert!(
        silent.last_answer.is_none_or(|ago| ago >= timeout - SECOND),
        "{silent:?}"
    );
}
