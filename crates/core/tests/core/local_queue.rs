//! Guarded writes and tokens of holds that tasks of one process hand on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::Ensemble;
use zookeeper_recipes_core::{
    ConnectOptions, CreateMode, Error, Hold, HoldView, Queue, QueueOptions, Refusal, Session,
};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation, SimulationOptions};

use crate::altered_ensemble::{Alterations, Altered, Call};
use crate::support::First;

fn simulation() -> Simulation {
    let simulation = Simulation::new(SimulationOptions::default());
    let created = simulation
        .administrator()
        .create("/data", b"", CreateMode::Persistent);
    created.expect("there is none");
    simulation
}

/// A queue whose clones hand the hold on ten times in a row.
async fn queue(ensemble: Arc<dyn Ensemble>) -> Queue {
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let options = QueueOptions::new().local(10);
    Queue::with_options(&session, "/locks/a", First, options).expect("a good path")
}

/// The hold of the first task, and the attempt of the next one, which waits in the process.
async fn holder_and_waiter(
    queue: &Queue,
) -> (
    Hold,
    impl Future<Output = Result<Hold, Error>> + Send + Unpin + use<>,
) {
    let first = queue.acquire().await.expect("nobody is before it");
    let waits = queue.clone();
    let mut next = Box::pin(async move { waits.acquire().await });
    assert!((&mut next).now_or_never().is_none());
    (first, next)
}

async fn write(hold: &HoldView, data: &str) -> Result<(), Error> {
    let write = hold.transaction().set_data("/data", data.as_bytes());
    write.commit().await.map(drop)
}

fn data(simulation: &Simulation) -> String {
    let tree = simulation.administrator().tree();
    let written = tree.into_iter().find(|znode| znode.path == "/data");
    let written = written.expect("nobody deletes it");
    String::from_utf8(written.data).expect("a text")
}

/// No write of an earlier hold lands once this one is granted.
async fn assert_nothing_lands_under(next: Hold, simulation: &Simulation) {
    let at_the_grant = data(simulation);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(data(simulation), at_the_grant);
    assert!(next.is_held());
}

/// The thread of the write is delayed before the sending, while the owner drops the hold.
#[tokio::test(start_paused = true)]
async fn hold_is_not_handed_on_while_its_write_is_about_to_be_sent() {
    let (simulation, call) = (simulation(), Call::default());
    let ensemble = Altered {
        ensemble: simulation.ensemble("one"),
        alterations: Alterations {
            before_transaction: call.clone(),
            ..Alterations::default()
        },
    };
    let queue = queue(Arc::new(ensemble)).await;
    let (first, next) = holder_and_waiter(&queue).await;
    let view = first.view();
    let (sender, writing) = oneshot::channel();
    call.set(move || {
        drop(first);
        let mut writing = Box::pin(async move {
            let next = next.await?;
            write(&next.view(), "next").await?;
            Ok::<Hold, Error>(next)
        });
        assert!((&mut writing).now_or_never().is_none(), "no answer yet");
        assert!(sender.send(writing).is_ok());
    });
    let late = write(&view, "late").await;
    let next = writing.await.expect("it was called").await;
    let next = next.expect("its turn comes, and it writes");
    // The owner has released it, and nobody else has deleted its znode.
    assert!(matches!(late, Err(Error::Released { .. })), "{late:?}");
    assert_eq!(data(&simulation), "next");
    assert_ne!(view.node_path(), next.node_path());
    assert_nothing_lands_under(next, &simulation).await;
}

#[tokio::test(start_paused = true)]
async fn hold_is_not_handed_on_before_the_answer_to_its_write() {
    for is_dropped in [false, true] {
        let simulation = simulation();
        let queue = queue(simulation.ensemble("one")).await;
        let (first, next) = holder_and_waiter(&queue).await;
        let view = first.view();
        let mut late = Box::pin(write(&view, "late"));
        assert!((&mut late).now_or_never().is_none(), "no answer yet");
        let late = (!is_dropped).then_some(late);
        first.release().await.expect("it is held");
        let next = next.await.expect("its turn comes");
        let path = next.node_path().to_owned();
        assert_nothing_lands_under(next, &simulation).await;
        assert_ne!(view.node_path(), path);
        drop(late);
    }
}

#[tokio::test(start_paused = true)]
async fn hold_is_not_handed_on_after_a_write_whose_outcome_is_unknown() {
    for lost in [FaultKind::RequestLost, FaultKind::ReplyLost] {
        let simulation = simulation();
        let queue = queue(simulation.ensemble("one")).await;
        let (first, next) = holder_and_waiter(&queue).await;
        let path = first.node_path().to_owned();
        let lost = Fault::new(lost).on(RequestKind::Transact);
        simulation.faults().inject(lost);
        let late = write(&first.view(), "late").await;
        assert!(
            matches!(late, Err(Error::OutcomeUnknown { .. })),
            "{late:?}"
        );
        drop(first);
        let next = next.await.expect("its turn comes");
        assert_ne!(path, next.node_path());
        assert_nothing_lands_under(next, &simulation).await;
    }
}

#[tokio::test(start_paused = true)]
async fn hold_is_handed_on_once_its_writes_are_answered() {
    let simulation = simulation();
    let queue = queue(simulation.ensemble("one")).await;
    let (first, mut next) = holder_and_waiter(&queue).await;
    let view = first.view();
    write(&first.view(), "first").await.expect("it is held");
    let refused = first
        .transaction()
        .create("/data", b"", CreateMode::Persistent);
    let refused = refused.commit().await.map_err(|error| match error {
        Error::Refused { refusal, .. } => refusal,
        error => panic!("{error}"),
    });
    assert_eq!(refused, Err(Refusal::NodeExists));
    drop(first);
    let handed_on = (&mut next).now_or_never();
    let next = handed_on.expect("at once").expect("it is handed on");
    assert_eq!(view.node_path(), next.node_path());
    let late = write(&view, "late").await;
    assert!(matches!(late, Err(Error::Released { .. })), "{late:?}");
    write(&next.view(), "next").await.expect("it is held");
    assert_eq!(data(&simulation), "next");
}

/// A store that compares tokens refuses the write of a task that has released its hold.
#[tokio::test(start_paused = true)]
async fn token_grows_when_a_hold_is_handed_on() {
    let simulation = simulation();
    let ours = queue(simulation.ensemble("one")).await;
    let theirs = queue(simulation.ensemble("two")).await;
    let (first, next) = holder_and_waiter(&ours).await;
    let last = tokio::spawn(async move { theirs.acquire().await });
    sleep(Duration::from_secs(1)).await;
    let first_token = first.fencing_token();
    drop(first);
    let next = next.await.expect("it is handed on");
    let next_token = next.fencing_token();
    assert_eq!(first_token.get(), next_token.get(), "one znode");
    assert_eq!([first_token.turn(), next_token.turn()], [0, 1]);
    assert!(first_token < next_token);
    drop(next);
    let last = last.await.expect("no panic").expect("its turn comes");
    assert!(next_token < last.fencing_token());
    assert_eq!(last.fencing_token().turn(), 0);
}

/// The znode is deleted between the handoff and the next poll of the task that gets it.
#[tokio::test(start_paused = true)]
async fn hold_from_the_server_is_handed_on_as_often_as_any_though_the_one_before_was_lost() {
    let simulation = simulation();
    let session = Session::open(simulation.ensemble("one"), ConnectOptions::new()).await;
    let options = QueueOptions::new().local(1);
    let session = session.expect("a session opens");
    let queue = Queue::with_options(&session, "/locks/a", First, options).expect("a good path");
    let (first, second) = holder_and_waiter(&queue).await;
    let mut third = Box::pin(queue.acquire());
    assert!((&mut third).now_or_never().is_none());
    sleep(Duration::from_secs(5)).await;
    let lost = first.node_path().to_owned();
    first.release().await.expect("it is handed on");
    simulation
        .administrator()
        .delete(&lost)
        .expect("the second task has it");
    sleep(Duration::from_secs(1)).await;
    let second = second.await.expect("it enters the queue anew");
    let path = second.node_path().to_owned();
    assert_ne!(path, lost);
    second.release().await.expect("it is held");
    let third = third.await.expect("its turn");
    assert_eq!(third.node_path(), path, "it is handed on");
}

#[tokio::test(start_paused = true)]
async fn hold_is_handed_on_so_many_times_before_another_process_has_its_turn() {
    const PASSES: u32 = 2;
    let simulation = simulation();
    let session = Session::open(simulation.ensemble("one"), ConnectOptions::new()).await;
    let options = QueueOptions::new().local(PASSES);
    let session = session.expect("a session opens");
    let ours = Queue::with_options(&session, "/locks/a", First, options).expect("a good path");
    let theirs = queue(simulation.ensemble("two")).await;
    let (turns, mut order) = tokio::sync::mpsc::unbounded_channel();
    let contend = |queue: Queue, name: &'static str, stays: u64| {
        let turns = turns.clone();
        async move {
            let hold = queue.acquire().await.expect("its turn comes");
            turns.send(name).expect("the test waits");
            sleep(Duration::from_secs(stays)).await;
            hold.release().await.expect("it is held");
        }
    };
    let first = tokio::spawn(contend(ours.clone(), "ours", 5));
    sleep(Duration::from_secs(1)).await;
    let other = tokio::spawn(contend(theirs, "theirs", 1));
    let tasks: Vec<_> = (0..4).map(|_| contend(ours.clone(), "ours", 1)).collect();
    drop(turns);
    futures_util::future::join_all(tasks).await;
    first.await.expect("no panic");
    other.await.expect("no panic");
    let mut names = Vec::new();
    while let Some(name) = order.recv().await {
        names.push(name);
    }
    assert_eq!(names, ["ours", "ours", "ours", "theirs", "ours", "ours"]);
}
