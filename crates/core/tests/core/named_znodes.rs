//! Creates of a znode whose whole name the recipe chooses, and whose outcome was unknown once.

use crate::support::*;

const LATE: Duration = Duration::from_secs(1);

/// True if the znode at [`SINGLE`] is there.
fn is_there(simulation: &Simulation) -> bool {
    let tree = simulation.administrator().tree();
    tree.iter().any(|node| node.path == SINGLE)
}

async fn create(znode: &mut NamedZnode) -> Result<Option<Stat>, Error> {
    in_time("the create", znode.create(b"")).await
}

/// Creates the znode, but drops the future before the answer.
async fn drop_create(znode: &mut NamedZnode, simulation: &Simulation) {
    inject(simulation, FaultKind::ReplyLate(LATE), RequestKind::Create);
    let dropped = timeout(LATE / 2, create(znode)).await;
    dropped.expect_err("no answer came");
    assert!(is_there(simulation), "it is created");
}

/// If the look ended the attempt, the next attempt would wait for its own znode to go.
#[tokio::test(start_paused = true)]
async fn create_without_an_answer_is_found_though_the_looks_are_throttled() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let mut znode = begin_single(&session).await;
    let faults = simulation.faults();
    faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Create));
    for nth in 1..=4 {
        let throttled = Fault::new(FaultKind::Throttled).on(RequestKind::Transact);
        faults.inject(throttled.nth(nth));
    }
    let created = create(&mut znode).await.expect("it is found");
    assert!(created.is_some(), "it is its own");
    assert_eq!(faults.waiting(), 0, "all were met");
}

#[tokio::test(start_paused = true)]
async fn create_after_a_dropped_create_finds_its_znode() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let mut znode = begin_single(&session).await;
    drop_create(&mut znode, &simulation).await;
    let created = create(&mut znode).await.expect("it is found");
    assert!(created.is_some(), "it is its own");
}

/// A future may be dropped after its create is answered. The znode would bar all others.
#[tokio::test(start_paused = true)]
async fn create_after_a_create_finds_its_znode_and_its_drop_deletes_it() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let mut znode = begin_single(&session).await;
    for _ in 0..2 {
        let created = create(&mut znode).await.expect("it is created or found");
        assert!(created.is_some(), "it is its own");
    }
    drop(znode);
    until(|| !is_there(&simulation)).await;
}

#[tokio::test(start_paused = true)]
async fn refused_create_does_not_forget_the_znode_of_a_dropped_create() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let mut znode = begin_single(&session).await;
    drop_create(&mut znode, &simulation).await;
    inject(&simulation, FaultKind::Throttled, RequestKind::Create);
    create(&mut znode).await.expect_err("the server throttles");
    drop(znode);
    tokio::time::sleep(LATE).await;
    assert!(!is_there(&simulation), "nothing remains");
}

/// The next create is its own, too.
#[tokio::test(start_paused = true)]
async fn create_that_was_lost_is_created_again_and_is_no_other_holders() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let mut znode = begin_single(&session).await;
    let faults = simulation.faults();
    faults.inject(Fault::new(FaultKind::RequestLost).on(RequestKind::Create));
    let created = create(&mut znode).await.expect("it is created");
    assert_eq!(faults.waiting(), 0, "the request was lost");
    assert!(created.is_some() && is_there(&simulation));
}
