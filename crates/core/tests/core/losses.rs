//! Holds that are lost: each report names one reason, and nobody is kept waiting for their owners.

use zookeeper_recipes_testkit::altered::{altered, passing};
use zookeeper_recipes_testkit::fake::FakeSession;

use crate::support::*;

const TICK: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(10);

fn simulation(servers: usize) -> Simulation {
    simulation!(servers, tick: TICK, session_timeout: TIMEOUT)
}

async fn open(simulation: &Simulation, process: &str) -> Session {
    let options = ConnectOptions::new().tick(TICK);
    crate::support::open(simulation.ensemble(process), options).await
}

async fn simulated() -> (Simulation, Session) {
    let simulation = simulation(1);
    let session = open(&simulation, "one").await;
    (simulation, session)
}

fn queue(session: &Session) -> Queue {
    lock(session, "/locks/a")
}

/// A queue whose clones wait for each other within the process.
fn local_queue(session: &Session) -> Queue {
    let options = QueueOptions::new().one_contender();
    queue_with(session, "/locks/a", options)
}

/// Cuts a process off until its lease has lapsed, but not its session.
async fn lapse(simulation: &Simulation, process: &str, hold: &Hold) {
    let lapses = hold.remaining() + Duration::from_millis(50);
    simulation.process(process).partition(lapses);
    assert_eq!(hold.lost().await, LossReason::LeaseElapsed);
}

fn lost_for<T>(outcome: &Result<T, Error>) -> Option<LossReason> {
    match outcome {
        Err(Error::Lost { reason, .. }) => Some(*reason),
        _ => None,
    }
}

/// The hold of a process that has a watch on its znode.
struct Watched {
    simulation: Simulation,
    session: Session,
    hold: Hold,
}

impl Watched {
    async fn new() -> Watched {
        let (simulation, session) = simulated().await;
        let hold = hold(&queue(&session)).await;
        let administrator = simulation.administrator();
        let is_watched = || {
            let watches = administrator.watches();
            watches.iter().any(|it| it.path == hold.node_path())
        };
        until(is_watched).await;
        Watched {
            simulation,
            session,
            hold,
        }
    }

    fn expire(&self) {
        let administrator = self.simulation.administrator();
        administrator.expire(self.hold.session_id());
    }

    fn delete(&self) {
        delete(&self.simulation, self.hold.node_path());
    }

    async fn until_not_held(&self) {
        until(|| !self.hold.is_held()).await;
    }

    async fn until_the_session_is_replaced(&self) {
        until(|| self.session.id() != Some(self.hold.session_id())).await;
    }

    /// Each report of the loss, also after the session is over, names this reason.
    async fn assert_lost_for(self, case: &str, reason: LossReason) {
        let (hold, view) = (&self.hold, self.hold.view());
        let state = HoldState::Lost(reason);
        let lost = timeout(TIMEOUT * 3, hold.lost()).await;
        assert_eq!(lost, Ok(reason), "{case}: lost()");
        assert_eq!(hold.state(), state, "{case}: state()");
        assert_eq!(view.ended().await, Ended::Lost(reason), "{case}: ended()");
        self.expire();
        self.until_the_session_is_replaced().await;
        assert_eq!(hold.state(), state, "{case}: state(), later");
        assert_eq!(hold.lost().await, reason, "{case}: lost(), later");
        let began = Instant::now();
        let released = self.hold.release().await;
        assert!(began.elapsed() < 5 * MILLISECOND, "{case}: at once");
        assert_eq!(lost_for(&released), Some(reason), "{case}: release()");
        let error = released.expect_err("it is lost");
        assert!(!error.is_retryable(), "{case}: {error}");
        let is_over = error.kind() == ErrorKind::SessionOver;
        let ended = matches!(reason, LossReason::Session(_));
        assert_eq!(is_over, ended, "{case}: {error}");
        assert_eq!(view.state(), state, "{case}: a view's state()");
    }
}

/// Loses the hold, and returns the reason.
type Loss = for<'a> fn(&'a Watched) -> BoxFuture<'a, LossReason>;

/// The lease runs out in a pause, and the znode is deleted with the session before the process
/// continues.
async fn pause(it: &Watched) {
    it.simulation.process("one").sleep(TIMEOUT * 2);
    sleep(TIMEOUT * 2 - MILLISECOND).await;
}

const LOSSES: [(&str, Loss); 5] = [
    // The servers report the deletion of the znode before the end of the session.
    ("an expiry whose deletion is noticed first", |it| {
        it.expire();
        async { LossReason::Deleted }.boxed()
    }),
    ("a deletion stays one when the session ends", |it| {
        it.delete();
        async { LossReason::Deleted }.boxed()
    }),
    ("a lapse in a pause, and somebody asks first", |it| {
        let lapses = async move {
            pause(it).await;
            let lapsed = LossReason::LeaseElapsed;
            assert_eq!(it.hold.state(), HoldState::Lost(lapsed));
            lapsed
        };
        lapses.boxed()
    }),
    ("a lapse in a pause, and nobody asks", |it| {
        let lapses = async move {
            pause(it).await;
            it.until_the_session_is_replaced().await;
            LossReason::LeaseElapsed
        };
        lapses.boxed()
    }),
    ("the lease would have ended after the session", |it| {
        let outage = it.hold.remaining() / 2;
        it.simulation.process("one").partition(outage);
        it.expire();
        let ends = async move {
            it.until_not_held().await;
            sleep(TIMEOUT * 2).await;
            LossReason::Deleted
        };
        ends.boxed()
    }),
];

#[tokio::test(start_paused = true)]
async fn each_report_of_a_loss_names_its_one_reason() {
    for (case, lose) in LOSSES {
        let watched = Watched::new().await;
        let reason = lose(&watched).await;
        watched.assert_lost_for(case, reason).await;
    }
}

/// No answer of a server is needed.
#[tokio::test(start_paused = true)]
async fn hold_and_its_work_end_with_the_report_of_a_deletion() {
    let watched = Watched::new().await;
    let late = Fault::new(FaultKind::ReplyLate(TIMEOUT / 2)).on(RequestKind::Sync);
    watched.simulation.faults().inject(late);
    let worked_at = Arc::new(Mutex::new(Instant::now()));
    let noted = worked_at.clone();
    let work = async move {
        loop {
            *noted.lock().expect("no panic") = Instant::now();
            sleep(MILLISECOND).await;
        }
    };
    watched.delete();
    let began = Instant::now();
    let worked = timeout(TIMEOUT, watched.hold.run_until_lost::<()>(work)).await;
    assert_eq!(worked, Ok(Err(LossReason::Deleted)));
    assert_eq!(watched.hold.remaining(), Duration::ZERO);
    let worked = *worked_at.lock().expect("no panic") - began;
    let soon = TIMEOUT / 50;
    assert!(worked < soon && began.elapsed() < soon, "{worked:?}");
    let released = watched.hold.release().await;
    assert_eq!(lost_for(&released), Some(LossReason::Deleted));
    assert!(began.elapsed() < TIMEOUT / 50, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn guarded_write_names_the_reason_that_its_hold_has() {
    let watched = Watched::new().await;
    let lapses = watched.hold.remaining() + MILLISECOND;
    watched.simulation.process("one").partition(lapses);
    sleep(lapses).await;
    // The session deletes the znode of the lost hold.
    sleep(TIMEOUT / 2).await;
    let written = watched.hold.transaction().delete("/none").commit().await;
    assert_eq!(lost_for(&written), Some(LossReason::LeaseElapsed));
}

/// The session ends while its client reconnects. The servers delete its znodes, and close the
/// connection that has just been confirmed.
#[tokio::test(start_paused = true)]
async fn attempt_whose_session_ends_during_a_reconnect_blames_no_other_client() {
    for seed in 0..400 {
        let simulation = simulation!(
            seed,
            servers: 3,
            network_delay: MILLISECOND..=MILLISECOND * 20,
            follower_lag: Duration::ZERO..=Duration::ZERO,
        );
        let [holder, waiter] = [
            open(&simulation, "holder").await,
            open(&simulation, "waiter").await,
        ];
        let _held = hold(&queue(&holder)).await;
        let waiting = queue(&waiter);
        let waiting = spawned(&waiting);
        sleep(SECOND).await;
        simulation.process("waiter").disconnect();
        sleep(MILLISECOND * (seed as u32 % 80)).await;
        let session = waiter.id().expect("it is open");
        simulation.administrator().expire(session);
        let failed = waiting.await.expect("no panic").expect_err("it is over");
        let is_over = matches!(failed, Error::SessionOver { .. });
        assert!(is_over, "{seed}: {failed}");
    }
}

#[tokio::test(start_paused = true)]
async fn hold_that_is_lost_and_kept_bars_nobody() {
    let (simulation, one) = simulated().await;
    let two = open(&simulation, "two").await;
    let kept = hold(&local_queue(&one)).await;
    let takes_a_turn = |queue: Queue| tokio::spawn(async move { take_turn(&queue).await });
    let same_process = takes_a_turn(local_queue(&one));
    let other_process = takes_a_turn(queue(&two));
    sleep(SECOND).await;
    lapse(&simulation, "one", &kept).await;
    for waiting in [same_process, other_process] {
        in_time("its turn", waiting).await.expect("no panic");
    }
    drop(kept);
}

/// Its session's runtime has no time for it.
#[tokio::test(start_paused = true)]
async fn loss_is_reported_in_time_though_the_session_is_blocked() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    simulation.process("one").block_sessions(TIMEOUT * 2);
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
    waiting.expect_err("it is held");
    session.close().await;
    let outcome = timeout(TIMEOUT, waits).await.expect("in time");
    assert_fails!(outcome, Error::SessionOver);
}

/// The name of the threads that must not panic.
const QUIET: &str = "quiet";

/// A session of a runtime, and a hold of it whose owner is of another runtime.
fn held_in_another_runtime() -> ([tokio::runtime::Runtime; 2], Simulation, Session, Hold) {
    let runtime = |name| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.thread_name(name).enable_all().build();
        runtime.expect("a runtime")
    };
    let (own, other) = (runtime(QUIET), runtime("other"));
    let simulation = other.block_on(async { simulation(1) });
    let session = own.block_on(open(&simulation, "one"));
    let held = other.block_on(hold(&queue(&session)));
    ([own, other], simulation, session, held)
}

/// Its owner hears of it at once.
#[test]
fn hold_is_lost_when_the_runtime_of_its_session_shuts_down() {
    let ([own, other], _simulation, _session, held) = held_in_another_runtime();
    own.shutdown_background();
    let reason = other.block_on(held.lost());
    assert!(matches!(reason, LossReason::Session(_)), "{reason:?}");
}

#[test]
fn session_is_over_when_its_runtime_shuts_down() {
    let ([own, other], simulation, session, held) = held_in_another_runtime();
    let queued = queue(&session);
    let waiting = other.spawn(async move { queued.acquire().await });
    let administrator = simulation.administrator();
    let until_queued = |length| {
        let standing = || administrator.children("/locks/a").len();
        let queued = eventually("the queue", async move || standing() == length);
        other.block_on(queued);
    };
    until_queued(2);
    let panicked = Arc::new(AtomicBool::new(false));
    let (seen, before) = (panicked.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        let is_quiet = std::thread::current().name() == Some(QUIET);
        seen.fetch_or(is_quiet, Ordering::Relaxed);
        before(panic);
    }));
    drop(own);
    let waited = other.block_on(waiting).expect("no panic");
    assert_fails!(waited, Error::SessionOver);
    until_queued(0);
    assert!(!panicked.load(Ordering::Relaxed));
    let over = SessionState::Ended(SessionEnd::Closed);
    assert_eq!(session.state(), over);
    assert!(!session.is_connected());
    let health = session.health();
    assert!(health.state == over, "{health}");
    assert_eq!(health.lease_left, Duration::ZERO);
    assert_eq!(session.id(), None);
    assert!(!held.is_held());
    other.block_on(async {
        let waited = in_time("at once", session.wait_connected()).await;
        assert_fails!(waited, Error::NoSession);
        let acquired = in_time("at once", queue(&session).acquire()).await;
        assert_fails!(acquired, Error::NoSession);
        in_time("at once", session.close()).await;
    });
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
    let release = begun(held.release());
    let released = HoldState::Released;
    assert_eq!(view.state(), released);
    assert_eq!(ended.await.expect("no panic"), Ended::Released);
    release.await.expect("it was held");
    let _next = hold(&queue).await;
    assert_eq!(view.state(), released);
    let refused = late.commit().await;
    assert_fails!(refused, Error::Released);
}

#[tokio::test(start_paused = true)]
async fn what_is_done_with_a_recipe_is_done_under_its_hold_and_leaves_nothing() {
    let (simulation, session) = simulated().await;
    let recipe: Box<dyn Recipe> = Box::new(queue(&session));
    let done = recipe.with(async |hold| hold.is_held());
    assert!(done.await.expect("nobody disturbs it"));
    let lost = recipe.with(|hold| {
        delete(&simulation, hold.node_path());
        std::future::pending::<()>()
    });
    assert_eq!(lost_for(&lost.await), Some(LossReason::Deleted));
    let contenders = recipe.contenders().await.expect("a look");
    assert!(contenders.is_empty(), "{contenders:?}");
}

/// The deletion has not been reported to the holder yet.
#[tokio::test(start_paused = true)]
async fn guarded_write_is_refused_once_the_znode_has_gone() {
    let (simulation, session) = simulated().await;
    make(&simulation, "/data");
    let held = hold(&queue(&session)).await;
    delete(&simulation, held.node_path());
    let write = held.transaction().set_data("/data", b"late");
    let write = write.commit().await;
    assert!(lost_for(&write).is_some(), "{write:?}");
}

/// No watch is set yet that could report the deletion.
#[tokio::test(start_paused = true)]
async fn release_reports_that_another_client_has_deleted_the_znode() {
    let (simulation, session) = simulated().await;
    let single = single_node(&session, "/single");
    let recipes: [Box<dyn Recipe>; 2] = [Box::new(queue(&session)), Box::new(single)];
    for recipe in recipes {
        let held = recipe.acquire().await.expect("nobody is before it");
        delete(&simulation, held.node_path());
        let released = held.release().await;
        assert_eq!(lost_for(&released), Some(LossReason::Deleted));
    }
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
    assert_fails!(write, Error::OutcomeUnknown);
    let children = simulation.administrator().children("/");
    assert!(children.contains(&"written".to_owned()), "{children:?}");
}

#[tokio::test(start_paused = true)]
async fn release_in_an_outage_ends_with_the_lease() {
    let (simulation, session) = simulated().await;
    let held = hold(&queue(&session)).await;
    let lost = hold(&lock(&session, "/locks/b")).await;
    simulation.process("one").partition(TIMEOUT * 2);
    let (began, remaining) = (Instant::now(), held.remaining());
    let released = held.release().await;
    assert!(lost_for(&released).is_some(), "{released:?}");
    assert!(began.elapsed() < remaining + 5 * MILLISECOND);
    // No server answers yet, and none is asked about a hold that is known to be lost.
    let reason = lost.lost().await;
    let began = Instant::now();
    assert_eq!(lost_for(&lost.release().await), Some(reason));
    assert!(began.elapsed() < 5 * MILLISECOND);
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
            let held = Arc::new(hold(&queue(&session)).await);
            let (asked, was_held) = (held.clone(), Arc::new(Mutex::new(false)));
            let seen = was_held.clone();
            simulation.on_commit(move |committed| {
                if matches!(committed.change, Change::SessionEnded { session, .. } if session == id)
                {
                    *seen.lock().expect("no panic") = asked.is_held();
                }
            });
            sleep(TIMEOUT / 2 + Duration::from_millis(phase / 3)).await;
            let pause = Duration::from_millis(pause);
            simulation.process("one").sleep(pause);
            sleep(pause + Duration::from_millis(12)).await;
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
async fn reconnect_into_another_session_ends_the_session_and_its_attempts() {
    let simulation = simulation!(tick: TICK, session_timeout: TIMEOUT, forgets_sessions: true);
    let session = open(&simulation, "one").await;
    let before = session.id();
    let held = hold(&queue(&session)).await;
    let waiting = queue(&session);
    let waiting = spawned(&waiting);
    sleep(SECOND).await;
    simulation.process("one").disconnect();
    let reason = timeout(TIMEOUT / 5, held.lost()).await;
    assert!(matches!(reason, Ok(LossReason::Session(_))), "{reason:?}");
    let waited = waiting.await.expect("no panic");
    assert_fails!(waited, Error::SessionOver);
    let reopened = timeout(TIMEOUT, async {
        let is_next = |id| Some(id) != before;
        until(|| matches!(session.state(), SessionState::Connected(id) if is_next(id))).await;
    });
    reopened.await.expect("a new session opens");
    // The znodes of the old session exist until its timeout.
    let next = timeout(TIMEOUT + TICK * 2, queue(&session).acquire()).await;
    drop(next.expect("in time").expect("it is free in the end"));
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
    use RequestKind::{Create, Delete, Transact};
    let sent = sent_since(&simulation, &before, [Create, Delete, Transact]);
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
    make(&simulation, "/locks");
    make(&simulation, "/locks/a");
    let stranger = "/locks/a/_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-__WRIT__";
    let created = administrator.create(stranger, b"", CreateMode::PersistentSequential);
    created.expect("a good path");
    // Children of no recipe, listed before it and after it.
    make(&simulation, "/locks/a/A");
    make(&simulation, "/locks/a/z");
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
    sleep(SECOND).await;
    assert_eq!(administrator.children("/locks/a").len(), 3);
}

/// The next holder may hold as soon as the server hears that the session is closed.
/// Events and health checks report the loss by then, though nobody asks the hold.
#[tokio::test]
async fn hold_is_lost_and_reported_before_the_server_hears_of_the_end_of_its_session() {
    const MEANWHILE: Duration = Duration::from_millis(20);
    let at_end = Call::default();
    let ensemble = calling_at_close(simulation(1).ensemble("one"), &at_end);
    let session = crate::support::open(ensemble, ConnectOptions::new()).await;
    let held = hold(&queue(&session)).await;
    let view = held.view();
    let (sender, at_the_end) = oneshot::channel();
    at_end.set(move || {
        std::thread::sleep(MEANWHILE);
        // A look at the state would note the loss.
        let kept = view.kept_after_loss();
        sender.send((kept, view.state())).expect("it is awaited");
    });
    session.close().await;
    let (kept, state) = at_the_end.await.expect("it is called");
    assert!(kept >= Some(MEANWHILE), "{kept:?}");
    let closed = LossReason::Session(SessionEnd::Closed);
    assert_eq!(state, HoldState::Lost(closed));
}

/// The servers have expired the session, so nobody closes it.
#[tokio::test(start_paused = true)]
async fn server_session_is_dropped_at_the_end_though_a_hold_of_it_is_kept() {
    let simulation = simulation(1);
    let (kept, dropped) = oneshot::channel::<()>();
    // The first session alone has it.
    let kept = Mutex::new(Some(kept));
    let ensemble = altered(simulation.ensemble("one"), move |_, raw| {
        let (kept, below) = (kept.lock().expect("no panic").take(), raw.clone());
        FakeSession {
            send: Box::new(move |request| {
                let _ = &kept;
                below.send(request)
            }),
            ..passing(raw)
        }
    });
    let session = crate::support::open(Arc::new(ensemble), ConnectOptions::new()).await;
    let held = hold(&queue(&session)).await;
    simulation.administrator().expire(held.session_id());
    let dropped = timeout(TIMEOUT * 3, dropped).await;
    dropped.expect("it is over").expect_err("it is dropped");
    assert!(!held.is_held());
}
