//! Handoff without a read: what a waiter may conclude from its notifications.

use std::fmt::Debug;

use zookeeper_recipes_testkit::meter::Meter;

use crate::support::*;

/// What shows a waiter that no contender is left before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WokenBy {
    /// That the holder says it releases.
    Release,
    /// That the only one before it goes.
    Deletion,
}

const PATH: &str = "/locks/handoff";
const TICK: Duration = Duration::from_millis(500);
const SESSION_TIMEOUT: Duration = Duration::from_secs(12);

/// A contender that is let in by this, and no other way.
fn first(woken_by: WokenBy) -> ByPlace {
    ByPlace {
        may_be_replaced: woken_by == WokenBy::Release,
        ..FIRST_ALONE
    }
}

async fn queue(simulation: &Simulation, process: &str, woken_by: WokenBy) -> (Queue, Meter) {
    let meter = Meter::default();
    let ensemble = meter.around(simulation.ensemble(process));
    let session = open(ensemble, ConnectOptions::new().tick(TICK)).await;
    let options = QueueOptions::new().mark_release(woken_by == WokenBy::Release);
    let queue = Queue::with_options(&session, PATH, first(woken_by), options);
    (queue.expect("a good path"), meter)
}

/// A hold, and the queue of another process.
async fn hold_and_queue(simulation: &Simulation, woken_by: WokenBy) -> (Hold, Queue) {
    let (holder, _) = queue(simulation, "holder", woken_by).await;
    let (waiter, _) = queue(simulation, "waiter", woken_by).await;
    (hold(&holder).await, waiter)
}

/// Waits until another contender is there, and returns the path of it.
async fn other_than(simulation: &Simulation, hold: &Hold) -> String {
    loop {
        let children = simulation.administrator().children(PATH);
        let mut others = children
            .iter()
            .filter(|name| !hold.node_path().ends_with(*name));
        match others.next() {
            Some(other) => return format!("{PATH}/{other}"),
            None => sleep(Duration::from_micros(10)).await,
        }
    }
}

/// The loss watch of the holder reports the deletion of its own znode.
#[tokio::test(start_paused = true)]
async fn release_after_a_wait_asks_no_server_how_the_znode_was_deleted() {
    let simulation = Simulation::default();
    let (first, _) = queue(&simulation, "first", WokenBy::Deletion).await;
    let (second, second_meter) = queue(&simulation, "second", WokenBy::Deletion).await;
    let held = first.acquire().await.expect("nobody is before it");
    let waiting = spawned(&second);
    sleep(SECOND).await;
    held.release().await.expect("it is held");
    let waited = waiting.await.expect("no panic").expect("its turn");
    // The meter counts the question as a probe. Right after a probe, no other is due for long.
    let syncs = || second_meter.read().probes;
    let probed = syncs();
    until(|| syncs() != probed).await;
    let before = syncs();
    waited.release().await.expect("it is held");
    sleep(Duration::from_millis(100)).await;
    assert_eq!(syncs(), before);
}

/// One that waits, alone behind a holder.
struct Waiter {
    simulation: Simulation,
    meter: Meter,
    hold: Hold,
    waiting: JoinHandle<Result<Hold, Error>>,
    /// The path of its znode.
    own: String,
}

impl Waiter {
    async fn new(seed: u64, woken_by: WokenBy) -> Waiter {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            session_timeout: SESSION_TIMEOUT,
            tick: TICK,
            // With this lag, a client can come back to a server that has yet to hear of the
            // release.
            follower_lag: Duration::from_millis(50)..=Duration::from_millis(400),
            ..SimulationOptions::default()
        });
        let administrator = simulation.administrator();
        let (holder, _) = queue(&simulation, "holder", woken_by).await;
        let (waiter, meter) = queue(&simulation, "waiter", woken_by).await;
        let hold = holder.acquire().await.expect("nobody is before it");
        let waiting = spawned(&waiter);
        let watches = || {
            let watches = administrator.watches();
            let here = watches.iter().filter(|watch| watch.path.starts_with(PATH));
            here.count()
        };
        // Both watch the holder's znode, since a holder watches its own after a while. The waiter
        // also watches its own.
        until(|| watches() >= 3).await;
        let queue = waiter.contenders().await.expect("a look");
        Waiter {
            simulation,
            meter,
            hold,
            waiting,
            own: format!("{PATH}/{}", queue[1].name),
        }
    }

    fn delete(&self) {
        delete(&self.simulation, &self.own);
    }

    /// The contender behind it waits on the holder now, and holds after the release.
    async fn assert_is_not_let_in(self, seed: u64) {
        self.hold.release().await.expect("it is released");
        assert_deleted(seed, &self.waiting.await.expect("no panic"));
    }
}

/// The attempt has ended because its znode was deleted.
fn assert_deleted(case: impl Debug, outcome: &Result<Hold, Error>) {
    assert!(
        matches!(outcome, Err(Error::ContenderDeleted { .. })),
        "{case:?}: {outcome:?}"
    );
}

fn each(seeds: u64) -> impl Iterator<Item = (u64, WokenBy)> {
    (0..seeds).flat_map(|seed| [(seed, WokenBy::Release), (seed, WokenBy::Deletion)])
}

#[tokio::test(start_paused = true)]
async fn waiter_alone_behind_a_holder_is_let_in_without_asking() {
    for (seed, woken_by) in each(20) {
        let waiter = Waiter::new(seed, woken_by).await;
        let before = waiter.meter.read().requests;
        waiter.hold.release().await.expect("it is released");
        let hold = waiter.waiting.await.expect("no panic").expect("its turn");
        assert_eq!(
            waiter.meter.read().requests,
            before,
            "seed {seed}: {woken_by:?}"
        );
        hold.release().await.expect("it is released");
    }
}

/// The one before it goes, too, so that the waiter finds nobody there as it sets its watches.
#[tokio::test(start_paused = true)]
async fn waiter_that_is_deleted_as_it_begins_to_watch_is_not_let_in_by_anothers_going() {
    for seed in 0..1_000 {
        let simulation = simulation!(seed, session_timeout: SESSION_TIMEOUT, tick: TICK);
        let (hold, waiter) = hold_and_queue(&simulation, WokenBy::Deletion).await;
        let waiting = spawned(&waiter);
        let own = other_than(&simulation, &hold).await;
        sleep(Duration::from_micros(seed * 10)).await;
        delete(&simulation, &own);
        delete(&simulation, hold.node_path());
        assert_deleted(seed, &waiting.await.expect("no panic"));
    }
}

/// The holder releases as the waiter's connection is made anew, in most cases: the server then reports
/// both to it in any order.
#[tokio::test(start_paused = true)]
async fn waiter_that_is_deleted_while_cut_off_is_not_let_in_by_a_release() {
    for (seed, woken_by) in each(500) {
        let waiter = Waiter::new(seed, woken_by).await;
        if seed % 5 > 0 {
            waiter.simulation.process("waiter").disconnect();
        }
        waiter.delete();
        sleep(Duration::from_millis(seed * 7 % 1_500)).await;
        waiter.assert_is_not_let_in(seed).await;
    }
}

/// Its watch has reported a write just before, and is not set again yet.
#[tokio::test(start_paused = true)]
async fn waiter_whose_own_watch_has_fired_is_not_let_in_by_anothers_going() {
    for (seed, woken_by) in each(50) {
        let waiter = Waiter::new(seed, woken_by).await;
        write(&waiter.simulation, &waiter.own);
        // A write alone is enough if nobody else can write.
        let is_written = woken_by == WokenBy::Release;
        if !is_written {
            waiter.delete();
        }
        delete(&waiter.simulation, waiter.hold.node_path());
        let outcome = waiter.waiting.await.expect("no panic");
        match outcome {
            Err(Error::ContenderWritten { .. }) if is_written => {}
            outcome => assert_deleted(seed, &outcome),
        }
    }
}

/// The super user writes to it before or while it is watched. Those behind it take that for its
/// release.
#[tokio::test(start_paused = true)]
async fn waiter_whose_znode_is_written_to_learns_it() {
    for waited in [Duration::ZERO, SECOND] {
        let simulation = Simulation::default();
        let administrator = simulation.administrator();
        let (hold, waiter) = hold_and_queue(&simulation, WokenBy::Release).await;
        let waiting = spawned(&waiter);
        let own = other_than(&simulation, &hold).await;
        sleep(waited).await;
        let watches = administrator.watches();
        let is_watched = watches.iter().any(|watch| watch.path == own);
        assert_eq!(is_watched, !waited.is_zero());
        administrator.set_data(&own, b"").expect("it is written");
        let outcome = timeout(SECOND, waiting).await;
        let outcome = outcome.expect("in time").expect("no panic");
        let names_it =
            matches!(&outcome, Err(Error::ContenderWritten { path, .. }) if *path == own);
        assert!(names_it, "{outcome:?}");
    }
}

/// Its owner keeps it.
#[tokio::test(start_paused = true)]
async fn hold_that_is_lost_by_a_write_bars_nobody() {
    let waiter = Waiter::new(0, WokenBy::Release).await;
    write(&waiter.simulation, waiter.hold.node_path());
    assert_eq!(waiter.hold.lost().await, LossReason::Written);
    let next = timeout(SESSION_TIMEOUT / 6, waiter.waiting).await;
    let next = next.expect("it is handed off").expect("no panic");
    release(next.expect("its turn")).await;
    let (third, _) = queue(&waiter.simulation, "third", WokenBy::Release).await;
    let third = timeout(SESSION_TIMEOUT / 6, take_turn(&third)).await;
    third.expect("nobody is before it");
}

#[tokio::test(start_paused = true)]
async fn holder_whose_znode_is_written_to_is_lost_also_before_it_is_watched() {
    for watched_for in [Duration::ZERO, SESSION_TIMEOUT] {
        let simulation = Simulation::default();
        let (holder, _) = queue(&simulation, "holder", WokenBy::Release).await;
        let hold = holder.acquire().await.expect("nobody is before it");
        sleep(watched_for).await;
        write(&simulation, hold.node_path());
        let reason = timeout(SESSION_TIMEOUT / 6, hold.lost()).await;
        assert_eq!(reason, Ok(LossReason::Written), "{watched_for:?}");
    }
}

/// A hold after a wait marks its release by a write.
#[tokio::test(start_paused = true)]
async fn holder_that_may_not_write_to_its_znode_deletes_it_all_the_same() {
    let waiter = Waiter::new(0, WokenBy::Release).await;
    waiter.hold.release().await.expect("it is released");
    let hold = waiter.waiting.await.expect("no panic").expect("its turn");
    grant(&waiter.simulation, hold.node_path(), Permission::READ);
    hold.release().await.expect("it may be deleted");
    let left = waiter.simulation.administrator().children(PATH);
    assert_eq!(left, [""; 0]);
}

/// Anybody can write to a contender of another library.
#[tokio::test(start_paused = true)]
async fn write_to_a_contender_without_a_mark_lets_nobody_in() {
    let simulation = Simulation::default();
    let administrator = simulation.administrator();
    let (waiter, _) = queue(&simulation, "waiter", WokenBy::Release).await;
    drop(waiter.acquire().await.expect("nobody is before it"));
    let path = format!("{PATH}/_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-");
    let stranger = administrator.create(&path, b"", CreateMode::PersistentSequential);
    let stranger = stranger.expect("it is created");
    let waiting = spawned(&waiter);
    for _ in 0..3 {
        sleep(SECOND).await;
        write(&simulation, &stranger);
    }
    assert!(!waiting.is_finished());
    delete(&simulation, &stranger);
    drop(waiting.await.expect("no panic").expect("its turn"));
}

/// Its place is another's by now.
#[tokio::test(start_paused = true)]
async fn waiter_that_looks_and_finds_its_znode_gone_does_not_hold() {
    let simulation = Simulation::default();
    let (hold, waiter) = hold_and_queue(&simulation, WokenBy::Deletion).await;
    let options = QueueOptions::new().strategy(WaitStrategy::Poll(SECOND));
    let first = first(WokenBy::Deletion);
    let waiter = Queue::with_options(waiter.session(), PATH, first, options).expect("a good path");
    let waiting = spawned(&waiter);
    sleep(Duration::from_millis(500)).await;
    let own = &waiter.contenders().await.expect("a look")[1].name;
    delete(&simulation, &format!("{PATH}/{own}"));
    assert_deleted("the waiter", &waiting.await.expect("no panic"));
    assert!(hold.is_held());
}

#[tokio::test(start_paused = true)]
async fn marked_release_lets_in_only_the_next_of_all_who_wait_on_the_holder() {
    let simulation = Simulation::default();
    let (holder, _) = queue(&simulation, "holder", WokenBy::Release).await;
    // Each waits on the holder, also if other contenders are between the two.
    let behind_the_holder = ByPlace {
        waits_on: |me| (me > 0).then_some(0..1),
        ..FIRST_ALONE
    };
    let queue = queue_by(holder.session(), PATH, behind_the_holder);
    let hold = queue.acquire().await.expect("nobody is before it");
    let waiting = [(); 3].map(|()| spawned(&queue));
    sleep(SESSION_TIMEOUT).await;
    hold.release().await.expect("it is released");
    sleep(SECOND).await;
    let held = waiting.iter().filter(|waiting| waiting.is_finished());
    assert_eq!(held.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn waiter_whose_rule_does_not_let_it_hold_is_not_let_in_by_anothers_going() {
    let simulation = Simulation::default();
    let (hold, waiter) = hold_and_queue(&simulation, WokenBy::Deletion).await;
    let never_first = ByPlace {
        waits_on: |me| Some(0..me),
        may_be_replaced: false,
        ..FIRST
    };
    let waiter = queue_by(waiter.session(), PATH, never_first);
    let waiting = spawned(&waiter);
    sleep(SECOND).await;
    hold.release().await.expect("it is released");
    let outcome = waiting.await.expect("no panic");
    assert_fails!(outcome, Error::InvalidInput);
}

/// Others hold still when one of them has said that it releases.
#[tokio::test(start_paused = true)]
async fn waiter_for_holders_that_share_is_not_let_in_by_a_release() {
    let simulation = Simulation::default();
    let (hold, waiter) = hold_and_queue(&simulation, WokenBy::Release).await;
    let waiter = lock(waiter.session(), PATH);
    let waiting = spawned(&waiter);
    sleep(SECOND).await;
    // The holder is lost, and cannot delete its znode.
    grant(&simulation, PATH, Permission::READ);
    write(&simulation, hold.node_path());
    sleep(SECOND).await;
    assert!(!waiting.is_finished());
    grant(&simulation, PATH, Permission::ALL);
    drop(hold);
    drop(waiting.await.expect("no panic").expect("its turn"));
}

/// The event has come from a server that had applied all that the holder before has written. The next
/// server lags behind.
#[tokio::test(start_paused = true)]
async fn holder_that_was_let_in_by_an_event_reads_what_the_one_before_has_written() {
    const DATA: &str = "/data";
    let mut stale = Vec::new();
    for seed in 0..10 {
        for woken_by in [WokenBy::Release, WokenBy::Deletion] {
            let simulation =
                simulation!(seed, servers: 3, session_timeout: SESSION_TIMEOUT, tick: TICK);
            make(&simulation, DATA);
            let (holder, _) = queue(&simulation, "holder", woken_by).await;
            let before = hold(&holder).await;
            let session = simulated_session(&simulation, "waiter").await;
            let waiter = queue_by(&session, PATH, first(woken_by));
            let waiting = spawned(&waiter);
            sleep(SESSION_TIMEOUT).await;
            let administrator = simulation.administrator();
            let here = administrator.server_of(session.id().expect("it is open"));
            let is_other = |it: &usize| Some(*it) != here && *it != administrator.leader();
            let lagging = (0..3).find(is_other).expect("there are three");
            simulation.faults().lag(lagging, SECOND);
            let write = before.transaction().set_data(DATA, b"new");
            write.commit().await.expect("it is held");
            release(before).await;
            let held = waiting.await.expect("no panic").expect("its turn");
            let path = DATA.parse().expect("a good path");
            let server = session.server(&path).await.expect("it is open");
            let mut states = server.connection_states.clone();
            states.mark_unchanged();
            let host = format!("server-{lagging}.simulation-0");
            session.set_hosts(&host).expect("a good name");
            states.changed().await.expect("the session lives");
            assert_eq!(server.connection(), None);
            let (data, _) = server.get(DATA).await.expect("it is read");
            if data != b"new" {
                stale.push((seed, woken_by));
            }
            assert!(held.is_held());
        }
    }
    assert!(stale.is_empty(), "{stale:?}");
}
