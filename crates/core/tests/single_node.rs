//! The lock of one znode, on a simulated ensemble.

use std::time::Duration;

use futures_util::FutureExt;
use zookeeper_recipes_core::{ConnectOptions, CreateMode, Error, Recipe, Session, SingleNode};
use zookeeper_recipes_testkit::simulation::{
    Fault, FaultKind, RequestKind, Simulation, SimulationOptions,
};

const PATH: &str = "/lock";

async fn lock(simulation: &Simulation, process: &str) -> SingleNode {
    let session = Session::open(simulation.ensemble(process), ConnectOptions::new());
    let session = session.await.expect("a session opens");
    SingleNode::new(&session, PATH).expect("a good path")
}

#[tokio::test(start_paused = true)]
async fn a_release_dropped_half_way_leaves_the_next_holder_its_znode() {
    let milliseconds = Duration::from_millis;
    let simulation = Simulation::new(SimulationOptions {
        network_delay: milliseconds(10)..=milliseconds(10),
        commit_delay: Duration::ZERO..=Duration::ZERO,
        ..SimulationOptions::default()
    });
    let (one, other) = (
        lock(&simulation, "one").await,
        lock(&simulation, "other").await,
    );
    let hold = one.acquire().await.expect("free");

    let mut release = hold.release().boxed();
    assert!((&mut release).now_or_never().is_none(), "it is under way");
    tokio::time::sleep(milliseconds(1)).await;
    // Arrives between the release's deletion and whatever its end sends.
    let next = tokio::spawn(async move { other.acquire().await });
    tokio::time::sleep(milliseconds(1)).await;
    drop(release);

    let next = next.await.expect("no panic").expect("free again");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(next.is_held(), "{:?}", next.state());
    let standing = simulation.administrator().tree();
    assert!(standing.iter().any(|znode| znode.path == PATH));
}

#[tokio::test(start_paused = true)]
async fn a_write_under_a_hold_that_was_let_go_of_is_refused_while_another_holds() {
    let simulation = Simulation::new(SimulationOptions::default());
    let (one, other) = (
        lock(&simulation, "one").await,
        lock(&simulation, "other").await,
    );
    let administrator = simulation.administrator();
    administrator
        .create("/data", b"", CreateMode::Persistent)
        .expect("an empty tree takes it");
    let hold = one.acquire().await.expect("free");
    let early = hold.transaction().set_data("/data", b"early", None);
    let late = hold.transaction().set_data("/data", b"late", None);
    early.commit().await.expect("it is held");
    hold.release().await.expect("it was held");

    let next = other.acquire().await.expect("free again");
    let refused = late.commit().await;
    assert!(matches!(refused, Err(Error::Lost { .. })), "{refused:?}");
    let write = next.transaction().set_data("/data", b"next", None);
    write.commit().await.expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn a_try_whose_answer_is_lost_is_tried_again() {
    let simulation = Simulation::new(SimulationOptions::default());
    let one = lock(&simulation, "one").await;
    let faults = simulation.faults();
    faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Get));
    let hold = one.try_acquire().await.expect("asked again");
    assert_eq!(faults.waiting(), 0);
    assert!(hold.is_some_and(|hold| hold.is_held()));
    faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Get));
    one.contenders().await.expect("asked again");
    assert_eq!(faults.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_znode_of_ones_own_is_known_however_many_answers_are_lost() {
    for lost in [RequestKind::Sync, RequestKind::Get] {
        let simulation = Simulation::new(SimulationOptions::default());
        let one = lock(&simulation, "one").await;
        let faults = simulation.faults();
        faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Create));
        faults.inject(Fault::new(FaultKind::ReplyLost).on(lost).under(PATH));
        let hold = one.acquire_timeout(Duration::from_secs(60)).await;
        assert_eq!(faults.waiting(), 0, "all that was to be lost is");
        assert!(hold.expect("it is nobody else's").is_held());
    }
}
