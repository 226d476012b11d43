//! Holds that are lost: nobody is kept waiting for their owners.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::ensemble::ConnectionState;
use zookeeper_recipes_core::{
    ConnectOptions, CreateMode, Ended, Error, ErrorKind, Hold, HoldState, LossReason, Queue,
    QueueOptions, Recipe, RecipeExt, Session, SessionEnd, SessionState,
};
use zookeeper_recipes_lock::SingleNodeLock;
use zookeeper_recipes_simulation::{
    Change, Fault, FaultKind, RequestKind, Simulation, SimulationOptions,
};

use crate::altered_ensemble::{Alterations, Altered, Call};
use crate::support::First;

const TICK: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(10);

fn simulation(servers: usize) -> Simulation {
    Simulation::new(SimulationOptions {
        servers,
        tick: TICK,
        session_timeout: TIMEOUT,
        ..SimulationOptions::default()
    })
}

async fn open(simulation: &Simulation, process: &str) -> Session {
    let options = ConnectOptions::new().tick(TICK);
    let opened = Session::open(simulation.ensemble(process), options).await;
    opened.expect("a session opens")
}

async fn simulated() -> (Simulation, Session) {
    let simulation = simulation(1);
    let session = open(&simulation, "one").await;
    (simulation, session)
}

/// A session, and what is called before the server hears of its end.
async fn session_with_a_call_at_its_end() -> (Session, Call) {
    let alterations = Alterations::default();
    let at_end = alterations.at_end.clone();
    let ensemble = Arc::new(Altered {
        ensemble: simulation(1).ensemble("one"),
        alterations,
    });
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    (session.expect("a session opens"), at_end)
}

fn queue(session: &Session) -> Queue {
    Queue::new(session, "/locks/a", First).expect("a good path")
}

/// A queue whose clones wait for each other within the process.
fn local_queue(session: &Session) -> Queue {
    let options = QueueOptions::new().one_contender();
    Queue::with_options(session, "/locks/a", First, options).expect("a good path")
}

async fn hold(queue: &Queue) -> Hold {
    queue.acquire().await.expect("nobody is before it")
}

/// An attempt that waits, polled once.
fn waits(queue: &Queue) -> impl Future<Output = Result<Hold, Error>> {
    let mut waits = Box::pin(queue.acquire());
    assert!((&mut waits).now_or_never().is_none());
    waits
}

/// Cuts a process off until its lease has lapsed, but not its session.
async fn lapse(simulation: &Simulation, process: &str, hold: &Hold) {
    let lapses = hold.remaining() + Duration::from_millis(50);
    simulation.process(process).partition(lapses);
    assert_eq!(hold.lost().await, LossReason::LeaseElapsed);
}

#[tokio::test(start_paused = true)]
async fn hold_that_is_lost_and_kept_bars_nobody() {
    let simulation = simulation(1);
    let one = open(&simulation, "one").await;
    let two = open(&simulation, "two").await;
    let kept = hold(&local_queue(&one)).await;
    let takes_a_turn =
        |queue: Queue| tokio::spawn(async move { queue.acquire().await?.release().await });
    let same_process = takes_a_turn(local_queue(&one));
    let other_process = takes_a_turn(queue(&two));
    sleep(Duration::from_secs(1)).await;
    lapse(&simulation, "one", &kept).await;
    for waiting in [same_process, other_process] {
        let turn = timeout(Duration::from_secs(60), waiting).await;
        let turn = turn.expect("in time").expect("no panic");
        turn.expect("it holds and releases");
    }
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn clone_of_a_lock_does_not_wait_for_a_lost_hold_of_its_process() {
    let (simulation, session) = simulated().await;
    let queue = local_queue(&session);
    let kept = hold(&queue).await;
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.acquire().await }
    });
    sleep(Duration::from_secs(1)).await;
    simulation
        .administrator()
        .expire(session.id().expect("open"));
    kept.lost().await;
    let attempt = timeout(Duration::from_secs(60), waiting).await;
    let attempt = attempt.expect("in time").expect("no panic");
    // It began in the session that is over.
    assert!(
        matches!(attempt, Err(Error::SessionOver { .. })),
        "{attempt:?}"
    );
    session.wait_connected().await.expect("a new session");
    assert!(queue.try_acquire().await.expect("a look").is_some());
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn turn_of_a_lost_hold_goes_to_one_waiter_and_once() {
    let (simulation, session) = simulated().await;
    let queue = local_queue(&session);
    let kept = hold(&queue).await;
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.acquire().await })
        })
        .collect();
    sleep(TIMEOUT).await;
    lapse(&simulation, "one", &kept).await;
    let administrator = simulation.administrator();
    let standing = || administrator.children("/locks/a").len();
    sleep(TIMEOUT).await;
    assert_eq!(standing(), 1);
    drop(kept);
    sleep(TIMEOUT).await;
    assert_eq!(standing(), 1);
    let held = waiting.iter().filter(|waiting| waiting.is_finished());
    assert_eq!(held.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn try_takes_the_turn_of_a_lost_hold_unless_somebody_waits() {
    let (simulation, session) = simulated().await;
    let queue = local_queue(&session);
    let kept = hold(&queue).await;
    sleep(TIMEOUT).await;
    lapse(&simulation, "one", &kept).await;
    sleep(TIMEOUT).await;
    let tried = queue.try_acquire().await.expect("a look").expect("free");
    let waits = waits(&queue);
    sleep(TIMEOUT).await;
    lapse(&simulation, "one", &tried).await;
    sleep(TIMEOUT).await;
    assert!(queue.try_acquire().await.expect("a look").is_none());
    assert!(waits.await.expect("its turn").is_held());
    drop((kept, tried));
}

#[tokio::test(start_paused = true)]
async fn try_takes_the_turn_of_a_lost_hold_behind_waiters_that_gave_up() {
    let (simulation, session) = simulated().await;
    let queue = local_queue(&session);
    let kept = hold(&queue).await;
    for _ in 0..3 {
        let gave_up = queue.acquire_timeout(TIMEOUT).await.map(drop);
        assert!(matches!(gave_up, Err(Error::DeadlineElapsed { .. })));
    }
    lapse(&simulation, "one", &kept).await;
    session.wait_connected().await.expect("a server answers");
    // The session deletes the znode of the lost hold.
    sleep(TIMEOUT).await;
    assert!(queue.try_acquire().await.expect("a look").is_some());
    drop(kept);
}

/// Its session's runtime has no time for it.
#[tokio::test(start_paused = true)]
async fn loss_is_reported_in_time_though_the_session_is_blocked() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    let process = simulation.process("one");
    process.block_sessions(TIMEOUT * 2);
    let reported = tokio::select! {
        // The sleep comes first: any poll of the hold looks at the clock and reports the loss.
        biased;
        () = sleep(TIMEOUT) => None,
        reason = held.lost() => Some(reason),
    };
    assert_eq!(reported, Some(LossReason::LeaseElapsed));
}

/// The attempt is polled no more, and keeps the `ServerSession` open.
#[tokio::test(start_paused = true)]
async fn attempt_that_waits_ends_with_its_session() {
    let (_simulation, session) = simulated().await;
    let _held = hold(&queue(&session)).await;
    let queue = queue(&session);
    let mut waits = Box::pin(async move { queue.acquire().await });
    let waiting = timeout(TIMEOUT, &mut waits).await;
    assert!(waiting.is_err(), "{waiting:?}");
    session.close().await;
    let outcome = timeout(TIMEOUT, waits).await.expect("in time");
    assert!(
        matches!(outcome, Err(Error::SessionOver { .. })),
        "{outcome:?}"
    );
}

/// Its owner is of another runtime, and hears of it at once.
#[test]
fn hold_is_lost_when_the_runtime_of_its_session_shuts_down() {
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    let (own, other) = (runtime(), runtime());
    let simulation = other.block_on(async { simulation(1) });
    let session = own.block_on(open(&simulation, "one"));
    let held = other.block_on(hold(&queue(&session)));
    own.shutdown_background();
    let reason = other.block_on(held.lost());
    assert!(matches!(reason, LossReason::Session(_)), "{reason:?}");
}

#[test]
fn session_is_over_when_its_runtime_shuts_down() {
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    let (own, other) = (runtime(), runtime());
    let simulation = other.block_on(async { simulation(1) });
    let session = own.block_on(open(&simulation, "one"));
    let held = other.block_on(hold(&queue(&session)));
    drop(own);
    let over = SessionState::Ended(SessionEnd::Closed);
    assert_eq!(session.state(), over);
    assert!(!session.is_connected());
    let health = session.health();
    assert!(health.state == over, "{health}");
    assert_eq!(health.lease_left, Duration::ZERO);
    assert_eq!(session.id(), None);
    assert!(!held.is_held());
    other.block_on(async {
        let waited = timeout(TIMEOUT, session.wait_connected()).await;
        let waited = waited.expect("it says so at once");
        assert!(matches!(waited, Err(Error::NoSession { .. })), "{waited:?}");
        let acquired = timeout(TIMEOUT, queue(&session).acquire()).await;
        let acquired = acquired.expect("it says so at once");
        let over = matches!(acquired, Err(Error::NoSession { .. }));
        assert!(over, "{acquired:?}");
        timeout(TIMEOUT, session.close()).await.expect("at once");
    });
}

#[tokio::test(start_paused = true)]
async fn release_of_a_lost_hold_says_so_at_once() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    simulation.process("one").partition(TIMEOUT);
    held.lost().await;
    let began = Instant::now();
    let released = held.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    assert!(began.elapsed() < Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn error_of_a_lost_hold_says_if_its_session_is_over_and_is_not_retryable() {
    let (simulation, session) = simulated().await;
    let expired = hold(&queue(&session)).await;
    let administrator = simulation.administrator();
    administrator.expire(session.id().expect("open"));
    expired.lost().await;
    let error = expired.release().await.expect_err("it is lost");
    assert_eq!(error.kind(), ErrorKind::SessionOver, "{error}");
    assert!(!error.is_retryable(), "{error}");
    session.wait_connected().await.expect("a new session");
    let deleted = hold(&queue(&session)).await;
    sleep(TIMEOUT).await;
    administrator
        .delete(deleted.node_path())
        .expect("it is there");
    deleted.lost().await;
    let error = deleted.release().await.expect_err("it is lost");
    assert_eq!(error.kind(), ErrorKind::HoldEnded, "{error}");
    assert!(!error.is_retryable(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn next_task_of_the_process_holds_after_the_release_of_a_lost_hold() {
    let (simulation, session) = simulated().await;
    let queue = local_queue(&session);
    let held = hold(&queue).await;
    let waits = waits(&queue);
    sleep(TIMEOUT).await;
    lapse(&simulation, "one", &held).await;
    let released = held.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    assert!(waits.await.expect("its turn").is_held());
}

/// The process may pause before the task is polled.
#[tokio::test(start_paused = true)]
async fn task_that_is_polled_long_after_its_turn_has_come_holds() {
    let simulation = simulation(1);
    // Without the tick, the lease ends long before the session can expire.
    let session = Session::open(simulation.ensemble("one"), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let queue = local_queue(&session);
    let held = hold(&queue).await;
    let waits = waits(&queue);
    let lapses = held.remaining() + Duration::from_millis(50);
    held.release().await.expect("it is held");
    simulation.process("one").partition(lapses);
    sleep(lapses).await;
    assert!(waits.await.expect("its turn").is_held());
}

#[tokio::test(start_paused = true)]
async fn view_of_a_hold_that_is_released_ends_before_another_holds() {
    let (_simulation, session) = simulated().await;
    let queue = queue(&session);
    let held = hold(&queue).await;
    let view = held.view();
    let ended = tokio::spawn({
        let view = view.clone();
        async move { view.ended().await }
    });
    let late = view.transaction().set_data("/data", b"late");
    let mut release = Box::pin(held.release());
    assert!((&mut release).now_or_never().is_none(), "it is under way");
    let released = HoldState::Released;
    assert_eq!(view.state(), released);
    assert_eq!(ended.await.expect("no panic"), Ended::Released);
    release.await.expect("it was held");
    let _next = hold(&queue).await;
    assert_eq!(view.state(), released);
    let refused = late.commit().await;
    assert!(
        matches!(refused, Err(Error::Released { .. })),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn view_of_a_hold_that_was_lost_says_why_also_when_it_has_been_let_go_of() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    let view = held.view();
    simulation
        .administrator()
        .delete(held.node_path())
        .expect("it exists");
    let reason = held.lost().await;
    drop(held);
    assert_eq!(view.ended().await, Ended::Lost(reason));
    assert_eq!(reason, LossReason::Deleted);
}

#[tokio::test(start_paused = true)]
async fn guarded_work_is_dropped_when_the_hold_is_lost() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    assert_eq!(held.run_until_lost(async { 7 }).await, Ok(7));
    let administrator = simulation.administrator();
    let path = held.node_path().to_owned();
    let work = async move {
        administrator.delete(&path).expect("it exists");
        std::future::pending::<()>().await;
    };
    assert_eq!(held.run_until_lost(work).await, Err(LossReason::Deleted));
}

#[tokio::test(start_paused = true)]
async fn what_is_done_with_a_recipe_is_done_under_its_hold_and_leaves_nothing() {
    let (simulation, session) = simulated().await;
    let recipe: Box<dyn Recipe> = Box::new(queue(&session));
    let administrator = simulation.administrator();
    let done = recipe.with(async |hold| hold.is_held());
    assert!(done.await.expect("nobody disturbs it"));
    let lost = recipe.with(|hold| {
        administrator.delete(hold.node_path()).expect("it exists");
        std::future::pending::<()>()
    });
    let lost = lost.await;
    let reason = LossReason::Deleted;
    assert!(
        matches!(&lost, Err(Error::Lost { reason: it, .. }) if *it == reason),
        "{lost:?}"
    );
    let contenders = recipe.contenders().await.expect("a look");
    assert!(contenders.is_empty(), "{contenders:?}");
}

/// The deletion has not been reported to the holder yet.
#[tokio::test(start_paused = true)]
async fn guarded_write_is_refused_once_the_znode_has_gone() {
    let (simulation, session) = simulated().await;
    let administrator = simulation.administrator();
    administrator
        .create("/data", b"", CreateMode::Persistent)
        .expect("an empty tree takes it");
    let held = hold(&queue(&session)).await;
    administrator.delete(held.node_path()).expect("it exists");
    let write = held.transaction().set_data("/data", b"late");
    let write = write.commit().await;
    assert!(matches!(write, Err(Error::Lost { .. })), "{write:?}");
}

/// No watch is set yet that could report the deletion.
#[tokio::test(start_paused = true)]
async fn release_reports_that_another_client_has_deleted_the_znode() {
    let (simulation, session) = simulated().await;
    let single = SingleNodeLock::new(&session, "/single").expect("a good path");
    let recipes: [Box<dyn Recipe>; 2] = [Box::new(queue(&session)), Box::new(single)];
    for recipe in recipes {
        let held = recipe.acquire().await.expect("nobody is before it");
        let deleted = simulation.administrator().delete(held.node_path());
        deleted.expect("it exists");
        let released = held.release().await;
        let reason = LossReason::Deleted;
        assert!(
            matches!(&released, Err(Error::Lost { reason: it, .. }) if *it == reason),
            "{released:?}"
        );
    }
}

/// The first deletion was applied, and its answer was lost.
#[tokio::test(start_paused = true)]
async fn release_whose_answer_is_lost_is_no_loss() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    let lost = Fault::new(FaultKind::ReplyLost).on(RequestKind::Delete);
    simulation.faults().inject(lost);
    held.release().await.expect("it was held to its end");
    assert_eq!(simulation.faults().waiting(), 0, "it was met");
}

/// The server gets the close behind the write.
#[tokio::test(start_paused = true)]
async fn guarded_write_that_is_sent_before_its_session_is_closed_has_an_unknown_outcome() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    let write = held.transaction();
    let write = write.create("/written", b"", CreateMode::Persistent);
    let mut write = write.commit().boxed();
    assert!((&mut write).now_or_never().is_none(), "it is under way");
    session.close().await;
    let write = write.await;
    assert!(
        matches!(write, Err(Error::OutcomeUnknown { .. })),
        "{write:?}"
    );
    let children = simulation.administrator().children("/");
    assert!(children.contains(&"written".to_owned()), "{children:?}");
}

#[tokio::test(start_paused = true)]
async fn attempt_that_is_dropped_before_its_create_is_answered_leaves_nothing() {
    let (simulation, session) = simulated().await;
    let queue = queue(&session);
    hold(&queue).await.release().await.expect("it is held");
    let late = FaultKind::ReplyLate(Duration::from_secs(1));
    let late = Fault::new(late).on(RequestKind::Create);
    simulation.faults().inject(late);
    let attempt = queue.acquire_timeout(Duration::from_millis(500)).await;
    assert!(
        matches!(attempt, Err(Error::DeadlineElapsed { .. })),
        "{attempt:?}"
    );
    let standing = || simulation.administrator().children("/locks/a").len();
    assert_eq!(standing(), 1, "it was created");
    sleep(TIMEOUT).await;
    assert_eq!(standing(), 0);
}

#[tokio::test(start_paused = true)]
async fn release_in_an_outage_ends_with_the_lease() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    simulation.process("one").partition(TIMEOUT * 2);
    let (began, remaining) = (Instant::now(), held.remaining());
    let released = held.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    assert!(began.elapsed() < remaining + Duration::from_millis(5));
}

/// A follower reports to the leader only every half tick which sessions it has heard of.
#[tokio::test(start_paused = true)]
async fn one_answer_after_a_pause_does_not_keep_a_hold() {
    let mut ended_while_held = 0;
    for pause in (2_500..7_000).step_by(250) {
        for phase in (0..2_000).step_by(250) {
            let simulation = simulation(3);
            let administrator = simulation.administrator();
            sleep(Duration::from_millis(phase)).await;
            let session = loop {
                let session = open(&simulation, "one").await;
                let server = administrator.server_of(session.id().expect("open"));
                if server != Some(administrator.leader()) {
                    break session;
                }
            };
            let id = session.id().expect("open");
            let held = std::sync::Arc::new(hold(&queue(&session)).await);
            let (asked, was_held) = (
                held.clone(),
                std::sync::Arc::new(std::sync::Mutex::new(false)),
            );
            let seen = was_held.clone();
            simulation.on_commit(move |committed| {
                if matches!(committed.change, Change::SessionEnded { session, .. } if session == id)
                {
                    *seen.lock().expect("no panic") = asked.is_held();
                }
            });
            sleep(TIMEOUT / 2 + Duration::from_millis(phase / 3)).await;
            simulation
                .process("one")
                .sleep(Duration::from_millis(pause));
            sleep(Duration::from_millis(pause + 12)).await;
            let server = administrator.server_of(id).unwrap_or(1);
            simulation.faults().cut_off_from_leader(server, TIMEOUT * 3);
            sleep(TIMEOUT * 2).await;
            ended_while_held += u32::from(*was_held.lock().expect("no panic"));
            simulation.on_commit(|_| ());
        }
    }
    assert_eq!(ended_while_held, 0);
}

/// What ClickHouse Keeper does at every reconnect.
#[tokio::test(start_paused = true)]
async fn reconnect_into_another_session_ends_the_session_and_its_holds() {
    let simulation = Simulation::new(SimulationOptions {
        tick: TICK,
        session_timeout: TIMEOUT,
        forgets_sessions: true,
        ..SimulationOptions::default()
    });
    let session = open(&simulation, "one").await;
    let before = session.id();
    let held = hold(&queue(&session)).await;
    simulation.process("one").disconnect();
    let reason = timeout(TIMEOUT / 5, held.lost()).await;
    assert!(matches!(reason, Ok(LossReason::Session(_))), "{reason:?}");
    let reopened = timeout(TIMEOUT, async {
        while !matches!(session.state(), SessionState::Connected(id) if Some(id) != before) {
            sleep(Duration::from_millis(10)).await;
        }
    });
    reopened.await.expect("a new session opens");
    // The znode of the old session exists until its timeout.
    let next = timeout(TIMEOUT + TICK * 2, queue(&session).acquire()).await;
    drop(next.expect("in time").expect("it is free in the end"));
}

#[tokio::test(start_paused = true)]
async fn hold_survives_a_reconnect_within_its_lease() {
    let simulation = simulation(3);
    let session = open(&simulation, "one").await;
    let held = hold(&queue(&session)).await;
    for _ in 0..20 {
        sleep(Duration::from_millis(700)).await;
        simulation.process("one").disconnect();
    }
    sleep(TIMEOUT * 3).await;
    assert!(held.is_held(), "{held:?}");
    // The proofs of the session are gone.
    let path = queue(&session);
    let children = simulation.administrator().children(path.path().as_str());
    assert_eq!(children.len(), 1, "{children:?}");
    let server = session.server(path.path()).await.expect("a session");
    assert_eq!(server.state(), ConnectionState::Connected);
}

#[tokio::test(start_paused = true)]
async fn reconnect_is_proven_by_one_transaction_that_changes_nothing() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    let standing = simulation.administrator().tree();
    let before = simulation.counters();
    simulation.process("one").disconnect();
    sleep(TIMEOUT / 2).await;
    assert!(held.is_held(), "{held:?}");
    assert_eq!(simulation.administrator().tree(), standing);
    let counters = simulation.counters();
    let kinds = [
        RequestKind::Create,
        RequestKind::Delete,
        RequestKind::Transact,
    ];
    let sent = kinds.map(|kind| counters.requests(kind) - before.requests(kind));
    assert_eq!(sent, [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn lapse_costs_the_holds_before_it_and_no_other() {
    let (simulation, session) = simulated().await;
    let lost = hold(&queue(&session)).await;
    // By then the lease has been renewed, and ends well before the session.
    sleep(TIMEOUT).await;
    lapse(&simulation, "one", &lost).await;
    let next = timeout(TIMEOUT, hold(&queue(&session))).await;
    let next = next.expect("the lost one bars nobody");
    sleep(TIMEOUT * 2).await;
    assert!(next.is_held());
    assert_eq!(lost.state(), HoldState::Lost(LossReason::LeaseElapsed));
    assert_eq!(simulation.administrator().children("/locks/a").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn child_of_another_recipe_is_an_error_that_names_it() {
    let (simulation, session) = simulated().await;
    let administrator = simulation.administrator();
    for parent in ["/locks", "/locks/a"] {
        administrator
            .create(parent, b"", CreateMode::Persistent)
            .expect("a good path");
    }
    let stranger = "/locks/a/_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-__WRIT__";
    administrator
        .create(stranger, b"", CreateMode::PersistentSequential)
        .expect("a good path");
    // Children of no recipe, listed before it and after it.
    for other in ["/locks/a/A", "/locks/a/z"] {
        let created = administrator.create(other, b"", CreateMode::Persistent);
        created.expect("a good path");
    }
    for attempt in [
        queue(&session).acquire().await.map(drop),
        queue(&session).try_acquire().await.map(drop),
    ] {
        let error = attempt.expect_err("two recipes at one path");
        let Error::OtherRecipe { child, recipe, .. } = &error else {
            panic!("{error:?}");
        };
        assert!(child.contains("__WRIT__"), "{child}");
        assert_eq!(*recipe, "a read/write lock");
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(administrator.children("/locks/a").len(), 3);
}

/// The next holder may hold as soon as the `ServerSession` is dropped, which closes the session.
#[tokio::test(start_paused = true)]
async fn hold_is_lost_before_the_server_hears_of_the_end_of_its_session() {
    let (session, at_end) = session_with_a_call_at_its_end().await;
    // Nothing but the session keeps the `ServerSession`: the loss watch is not set yet.
    let held = hold(&queue(&session)).await;
    let view = held.view();
    let (sender, at_the_drop) = oneshot::channel();
    at_end.set(move || sender.send(view.state()).expect("it is awaited"));
    session.close().await;
    let state = at_the_drop.await.expect("the ServerSession is dropped");
    assert_eq!(
        state,
        HoldState::Lost(LossReason::Session(SessionEnd::Closed))
    );
}

/// Events and health checks report the loss from then on.
#[tokio::test]
async fn loss_is_reported_before_the_server_hears_of_the_end_of_its_session() {
    const MEANWHILE: Duration = Duration::from_millis(20);
    let (session, at_end) = session_with_a_call_at_its_end().await;
    let held = hold(&queue(&session)).await;
    let view = held.view();
    let (sender, at_the_drop) = oneshot::channel();
    at_end.set(move || {
        std::thread::sleep(MEANWHILE);
        let kept = view.kept_after_loss();
        sender.send(kept).expect("it is awaited");
    });
    session.close().await;
    let kept = at_the_drop.await.expect("the ServerSession is dropped");
    assert!(kept >= Some(MEANWHILE), "{kept:?}");
}

/// The deletions and transactions of a session that loses one hold by a lapse.
async fn deletions_at_a_lapse(released: usize) -> u64 {
    let (simulation, session) = simulated().await;
    for _ in 0..released {
        let short = hold(&queue(&session)).await;
        short.release().await.expect("it is held");
    }
    let lost = hold(&queue(&session)).await;
    sleep(TIMEOUT).await;
    let deletions = || {
        let counters = simulation.counters();
        counters.requests(RequestKind::Delete) + counters.requests(RequestKind::Transact)
    };
    let before = deletions();
    lapse(&simulation, "one", &lost).await;
    sleep(TIMEOUT).await;
    assert_eq!(simulation.administrator().children("/locks/a"), [""; 0]);
    deletions() - before
}

#[tokio::test(start_paused = true)]
async fn lapse_costs_no_request_for_a_hold_that_was_released() {
    assert_eq!(
        deletions_at_a_lapse(10).await,
        deletions_at_a_lapse(0).await
    );
}

#[tokio::test(start_paused = true)]
async fn hold_whose_znode_somebody_has_deleted_is_dropped_without_a_request() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    sleep(Duration::from_secs(5)).await;
    let administrator = simulation.administrator();
    administrator.delete(held.node_path()).expect("it exists");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(held.state(), HoldState::Lost(LossReason::Deleted));
    let deletions = || simulation.counters().requests(RequestKind::Delete);
    let before = deletions();
    drop(held);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(deletions(), before);
}

/// The servers have expired the session, so nobody closes it.
#[tokio::test(start_paused = true)]
async fn server_session_is_dropped_at_the_end_though_a_hold_of_it_is_kept() {
    let alterations = Alterations::default();
    let at_end = alterations.at_end.clone();
    let simulation = simulation(1);
    let ensemble = Arc::new(Altered {
        ensemble: simulation.ensemble("one"),
        alterations,
    });
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let held = hold(&queue(&session)).await;
    let (sender, dropped) = oneshot::channel();
    // The test may have failed by then.
    at_end.set(move || sender.send(()).unwrap_or_default());
    simulation.administrator().expire(held.session_id());
    let dropped = timeout(TIMEOUT * 3, dropped).await;
    dropped
        .expect("it is over")
        .expect("the ServerSession is dropped");
    assert!(!held.is_held());
}
