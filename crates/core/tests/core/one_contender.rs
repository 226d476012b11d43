//! Tasks of one process whose attempts are one contender.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::{Error, Hold, HoldView, Queue, QueueOptions};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation};
use zookeeper_recipes_suite::simulated_session;

use crate::support::{FIRST, delete, make, simulation};

const PATH: &str = "/locks/a";
const ROUND_TRIP: Duration = Duration::from_millis(100);

async fn queue(simulation: &Simulation, process: &str) -> Queue {
    let session = simulated_session(simulation, process).await;
    let options = QueueOptions::new().one_contender();
    Queue::with_options(&session, PATH, FIRST, options).expect("a good path")
}

/// The hold of the first task, and the attempt of the next one, which waits in the process.
async fn holder_and_waiter(
    queue: &Queue,
) -> (
    Hold,
    impl Future<Output = Result<Hold, Error>> + Send + Unpin + use<>,
) {
    let first = queue.acquire().await.expect("nobody is before it");
    (first, waiter(queue))
}

fn waiter(queue: &Queue) -> impl Future<Output = Result<Hold, Error>> + Send + Unpin + use<> {
    let waits = queue.clone();
    let mut next = Box::pin(async move { waits.acquire().await });
    assert!((&mut next).now_or_never().is_none());
    next
}

#[tokio::test(start_paused = true)]
async fn turn_within_the_process_costs_one_round_trip() {
    let simulation = simulation!(
        network_delay: ROUND_TRIP / 2..=ROUND_TRIP / 2,
        commit_delay: Duration::ZERO..=Duration::ZERO,
    );
    let queue = queue(&simulation, "one").await;
    for is_dropped in [false, true] {
        let (first, next) = holder_and_waiter(&queue).await;
        let began = Instant::now();
        let let_go = async move {
            match is_dropped {
                true => drop(first),
                false => first.release().await.expect("it is held"),
            }
        };
        let (next, ()) = tokio::join!(next, let_go);
        let took = began.elapsed();
        assert!(took < ROUND_TRIP * 3 / 2, "{took:?}");
        next.expect("its turn").release().await.expect("it is held");
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_one_contender_and_hold_in_the_order_of_their_calls() {
    let simulation = Simulation::default();
    let queue = queue(&simulation, "one").await;
    let (first, second) = holder_and_waiter(&queue).await;
    let (gives_up, third) = (waiter(&queue), waiter(&queue));
    let gives_up = timeout(Duration::from_secs(1), gives_up).await;
    assert!(gives_up.is_err());
    assert!(queue.try_acquire().await.expect("an answer").is_none());
    assert_eq!(simulation.administrator().children(PATH).len(), 1);

    let (order, mut held) = mpsc::unbounded_channel();
    let hold = async |name: &'static str, waiting: &mut (dyn Future<Output = _> + Send + Unpin)| {
        let hold: Result<Hold, Error> = waiting.await;
        let hold = hold.expect("its turn");
        order.send((name, hold.fencing_token())).expect("read");
        hold.release().await.expect("it is held");
    };
    order
        .send(("first", first.fencing_token()))
        .expect("it is read below");
    first.release().await.expect("it is held");
    let (mut second, mut third) = (second, third);
    tokio::join!(hold("third", &mut third), hold("second", &mut second));
    let mut holds = Vec::new();
    while let Ok(hold) = held.try_recv() {
        holds.push(hold);
    }
    assert_eq!(
        holds.iter().map(|it| it.0).collect::<Vec<_>>(),
        ["first", "second", "third"]
    );
    assert!(holds.is_sorted_by(|one, next| one.1 < next.1), "{holds:?}");
}

#[tokio::test(start_paused = true)]
async fn other_process_waits_for_one_turn_of_this_one() {
    let simulation = Simulation::default();
    let ours = queue(&simulation, "one").await;
    let theirs = queue(&simulation, "two").await;
    let (first, second) = holder_and_waiter(&ours).await;
    let third = waiter(&ours);
    let other = tokio::spawn(async move { theirs.acquire().await });
    sleep(Duration::from_secs(1)).await;
    let (order, mut held) = mpsc::unbounded_channel();
    let turn = async |name: &'static str, hold: Result<Hold, Error>| {
        order.send(name).expect("it is read below");
        sleep(Duration::from_secs(1)).await;
        hold.expect("its turn").release().await.expect("it is held");
    };
    tokio::join!(
        turn("first", Ok(first)),
        async { turn("second", second.await).await },
        async { turn("third", third.await).await },
        async { turn("other", other.await.expect("no panic")).await },
    );
    let mut names = Vec::new();
    while let Ok(name) = held.try_recv() {
        names.push(name);
    }
    assert_eq!(names, ["first", "other", "second", "third"]);
}

/// The create of the next task is behind the deletion on a connection that loses it, or its answer.
#[tokio::test(start_paused = true)]
async fn next_task_waits_behind_a_znode_whose_deletion_was_lost_and_then_holds() {
    for lost in [FaultKind::RequestLost, FaultKind::ReplyLost] {
        for is_dropped in [false, true] {
            let simulation = Simulation::default();
            let queue = queue(&simulation, "one").await;
            let (first, next) = holder_and_waiter(&queue).await;
            let faults = simulation.faults();
            faults.inject(Fault::new(lost).on(RequestKind::Delete));
            let path = first.node_path().to_owned();
            let held = async {
                let next = next.await.expect("its turn");
                let children = simulation.administrator().children(PATH);
                assert_eq!(children.len(), 1, "the first one's znode is deleted");
                next
            };
            let let_go = async {
                match is_dropped {
                    true => drop(first),
                    false => first.release().await.expect("its deletion is repeated"),
                }
            };
            let both = timeout(Duration::from_secs(60), async {
                tokio::join!(held, let_go)
            });
            let (next, ()) = both.await.expect("in time");
            assert_eq!(faults.waiting(), 0, "the deletion met the fault");
            assert_ne!(next.node_path(), path);
            assert!(next.is_held());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn release_that_is_dropped_at_any_moment_lets_the_next_task_hold() {
    for polls in 0..4 {
        let simulation = Simulation::default();
        let queue = queue(&simulation, "one").await;
        let (first, next) = holder_and_waiter(&queue).await;
        let mut release = Box::pin(first.release());
        for _ in 0..polls {
            let _ = timeout(Duration::from_millis(1), &mut release).await;
        }
        drop(release);
        let next = timeout(Duration::from_secs(60), next).await;
        assert!(next.expect("in time").expect("its turn").is_held());
    }
}

async fn write(hold: &HoldView, data: &str) -> Result<(), Error> {
    let write = hold.transaction().set_data("/data", data.as_bytes());
    write.commit().await.map(drop)
}

/// Each hold has a znode of its own, so the server itself refuses the late write of another.
#[tokio::test(start_paused = true)]
async fn no_write_of_an_earlier_hold_lands_once_the_next_task_holds() {
    let lost = [FaultKind::RequestLost, FaultKind::ReplyLost].map(Some);
    for lost in [None].into_iter().chain(lost) {
        let simulation = Simulation::default();
        let administrator = simulation.administrator();
        make(&simulation, "/data");
        let queue = queue(&simulation, "one").await;
        let (first, next) = holder_and_waiter(&queue).await;
        let view = first.view();
        if let Some(lost) = lost {
            simulation
                .faults()
                .inject(Fault::new(lost).on(RequestKind::Transact));
        }
        let mut late = Box::pin(write(&view, "late"));
        assert!((&mut late).now_or_never().is_none(), "no answer yet");
        drop(first);
        let next = next.await.expect("its turn comes");
        let data = || {
            let tree = administrator.tree();
            let node = tree.into_iter().find(|znode| znode.path == "/data");
            node.expect("nobody deletes it").data
        };
        let at_the_grant = data();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(data(), at_the_grant);
        let refused = write(&view, "later").await;
        assert!(matches!(refused, Err(Error::Released { .. })));
        write(&next.view(), "next").await.expect("it is held");
        drop(late);
    }
}

/// Its owner hangs, and keeps no other task of the process waiting.
#[tokio::test(start_paused = true)]
async fn hold_that_is_lost_and_kept_lets_the_next_task_hold() {
    let simulation = Simulation::default();
    let queue = queue(&simulation, "one").await;
    let (kept, next) = holder_and_waiter(&queue).await;
    // Its loss watch is set with the next probe.
    sleep(Duration::from_secs(5)).await;
    delete(&simulation, kept.node_path());
    let next = timeout(Duration::from_secs(60), next).await;
    let next = next.expect("in time").expect("its turn");
    assert!(next.is_held() && !kept.is_held());
    next.release().await.expect("it is held");
    assert!(queue.try_acquire().await.expect("an answer").is_some());
    drop(kept);
}
