//! Tasks of one process whose attempts are one contender.

use tokio::sync::mpsc;

use crate::support::*;

type Waiting = BoxFuture<'static, Result<Hold, Error>>;

const PATH: &str = "/locks/a";
const ROUND_TRIP: Duration = Duration::from_millis(100);

async fn queue(simulation: &Simulation, process: &str) -> Queue {
    let session = simulated_session(simulation, process).await;
    let options = QueueOptions::new().one_contender();
    queue_with(&session, PATH, options)
}

/// The hold of the first task, and the attempt of the next one, which waits in the process.
async fn holder_and_waiter(queue: &Queue) -> (Hold, Waiting) {
    (hold(queue).await, waiter(queue))
}

fn waiter(queue: &Queue) -> Waiting {
    let queue = queue.clone();
    begun(async move { queue.acquire().await })
}

/// Drops a hold, or releases it.
async fn let_go(hold: Hold, is_dropped: bool) {
    match is_dropped {
        true => drop(hold),
        false => release(hold).await,
    }
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
        let (next, ()) = tokio::join!(next, let_go(first, is_dropped));
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
    let hold = async |name: &'static str, waiting: Waiting| {
        let hold = waiting.await.expect("its turn");
        order.send((name, hold.fencing_token())).expect("read");
        release(hold).await;
    };
    let first = async { Ok(first) }.boxed();
    tokio::join!(
        hold("first", first),
        hold("third", third),
        hold("second", second)
    );
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
    let other = spawned(&theirs);
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

/// A view keeps the value of the znode that was replaced.
#[tokio::test(start_paused = true)]
async fn turn_of_a_hold_that_is_replaced_passes_on() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let counts = &["new-"];
    let options = QueueOptions::new().one_contender();
    let queue = Queue::with_options(&session, PATH, ByPlace { counts, ..FIRST }, options);
    let (first, next) = holder_and_waiter(&queue.expect("a good path")).await;
    let _view = first.view();
    let replaced = first.replace("lock-", "new-", b"", &everyone()).await;
    let next = tokio::spawn(next);
    let entered = until(|| simulation.administrator().children(PATH).len() == 2);
    timeout(SECOND, entered).await.expect("its turn passes on");
    release(replaced.expect("replaced")).await;
    release(next.await.expect("no panic").expect("its turn")).await;
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
            let both = async { tokio::join!(held, let_go(first, is_dropped)) };
            let (next, ()) = in_time("both", both).await;
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
        let next = in_time("its turn", next).await;
        assert!(next.expect("its turn").is_held());
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
        make(&simulation, "/data");
        let queue = queue(&simulation, "one").await;
        let (first, next) = holder_and_waiter(&queue).await;
        let view = first.view();
        if let Some(lost) = lost {
            inject(&simulation, lost, RequestKind::Transact);
        }
        let late = begun(write(&view, "late"));
        drop(first);
        let next = next.await.expect("its turn comes");
        let at_the_grant = data(&simulation, "/data");
        sleep(60 * SECOND).await;
        assert_eq!(data(&simulation, "/data"), at_the_grant);
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
