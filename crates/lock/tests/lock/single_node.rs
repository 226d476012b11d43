//! The lock of one znode, on a simulated ensemble.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::sleep;
use zookeeper_recipes_core::{CreateMode, Error, Hold, HoldState, LossReason};
use zookeeper_recipes_lock::SingleNodeLock;
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

const PATH: &str = "/lock";

async fn lock(simulation: &Simulation, process: &str) -> SingleNodeLock {
    let session = simulated_session(simulation, process).await;
    SingleNodeLock::new(&session, PATH).expect("a good path")
}

/// The lock of two processes.
async fn two_locks(simulation: &Simulation) -> (SingleNodeLock, SingleNodeLock) {
    let one = lock(simulation, "one").await;
    (one, lock(simulation, "other").await)
}

#[tokio::test(start_paused = true)]
async fn a_release_dropped_half_way_leaves_the_next_holder_its_znode() {
    let milliseconds = Duration::from_millis;
    let simulation = Simulation::new(SimulationOptions {
        network_delay: milliseconds(10)..=milliseconds(10),
        commit_delay: Duration::ZERO..=Duration::ZERO,
        ..SimulationOptions::default()
    });
    let (one, other) = two_locks(&simulation).await;
    // After this, its next create is sent at once.
    let first = other.acquire().await.expect("free");
    first.release().await.expect("it is held");
    let hold = one.acquire().await.expect("free");

    let mut release = hold.release().boxed();
    assert!((&mut release).now_or_never().is_none(), "it is under way");
    sleep(milliseconds(1)).await;
    // The next holder arrives between the release's deletion and the requests of its end.
    let next = tokio::spawn(async move { other.acquire().await });
    sleep(milliseconds(1)).await;
    drop(release);

    let next = next.await.expect("no panic").expect("free again");
    sleep(Duration::from_secs(5)).await;
    assert!(next.is_held(), "{:?}", next.state());
    let standing = simulation.administrator().tree();
    assert!(standing.iter().any(|znode| znode.path == PATH));
}

#[tokio::test(start_paused = true)]
async fn guarded_write_is_refused_at_once_and_not_sent() {
    let simulation = Simulation::default();
    let (one, _) = two_locks(&simulation).await;
    let administrator = simulation.administrator();
    let made = administrator.create("/data", b"", CreateMode::Persistent);
    made.expect("an empty tree takes it");
    let hold = one.acquire().await.expect("free");
    let write = hold.transaction().set_data("/data", b"written");
    let refused = write.commit().await;
    assert!(
        matches!(refused, Err(Error::InvalidInput(_))),
        "{refused:?}"
    );
    let tree = administrator.tree();
    let data = tree.iter().find(|znode| znode.path == "/data");
    assert!(data.is_some_and(|znode| znode.data.is_empty()));
    assert!(hold.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_try_whose_answer_is_lost_is_tried_again() {
    let simulation = Simulation::default();
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
async fn znode_of_ones_own_is_known_though_two_answers_in_a_row_are_lost() {
    // The session also proves each reconnect by a transaction.
    for (lost, times) in [(RequestKind::Transact, 2), (RequestKind::Get, 1)] {
        let simulation = Simulation::default();
        let one = lock(&simulation, "one").await;
        let faults = simulation.faults();
        let create = Fault::new(FaultKind::ReplyLost).on(RequestKind::Create);
        faults.inject(create.under(PATH));
        for nth in 1..=times {
            let lost = Fault::new(FaultKind::ReplyLost).on(lost);
            faults.inject(lost.of_process("one").nth(nth));
        }
        let hold = one.acquire_timeout(TIMEOUT * 6).await;
        assert_eq!(faults.waiting(), 0, "all that was to be lost is");
        assert!(hold.expect("it is nobody else's").is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn znode_of_ones_own_is_known_by_a_server_that_lags_behind() {
    for seed in 0..20 {
        let simulation = lagging(seed);
        let one = lock(&simulation, "one").await;
        let create = Fault::new(FaultKind::ReplyLost).on(RequestKind::Create);
        let lost = create.under(PATH).reconnecting_to(1 + seed as usize % 2);
        simulation.faults().inject(lost);
        let hold = one.acquire_timeout(TIMEOUT * 6).await;
        assert_eq!(simulation.faults().waiting(), 0, "it was lost");
        assert!(hold.expect("it is nobody else's").is_held(), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_refuses_a_create_is_one_that_knows_creates() {
    let simulation = Simulation::default();
    let (one, other) = two_locks(&simulation).await;
    let hold = other.acquire().await.expect("free");
    let waiter = tokio::spawn(async move { one.acquire_timeout(TIMEOUT * 6).await });
    // Its first create is refused.
    sleep(Duration::from_secs(1)).await;
    let faults = simulation.faults();
    for nth in 1..=10 {
        let lost = Fault::new(FaultKind::RequestLost).on(RequestKind::Create);
        faults.inject(lost.nth(nth));
    }
    hold.release().await.expect("it is held");
    let hold = waiter.await.expect("no panic");
    assert_eq!(faults.waiting(), 0, "all that was to be lost is");
    assert!(hold.expect("it knows creates").is_held());
}

const TICK: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(10);

fn patient(options: &mut SimulationOptions) {
    (options.tick, options.session_timeout) = (TICK, TIMEOUT);
}

/// An ensemble whose followers lag behind their leader.
fn lagging(seed: u64) -> Simulation {
    Simulation::with(|it| {
        patient(it);
        (it.seed, it.servers) = (seed, 3);
        it.follower_lag = Duration::from_millis(100)..=Duration::from_millis(1_500);
        // A client is without a connection for longer than a first wait before a retry.
        it.network_delay = Duration::from_millis(20)..=Duration::from_millis(50);
    })
}

/// Holds with another's lock from when the znode is deleted by hand.
async fn replaced(simulation: &Simulation, other: &SingleNodeLock) -> Hold {
    let administrator = simulation.administrator();
    administrator.delete(PATH).expect("it exists");
    other.acquire().await.expect("nobody else wants it")
}

/// Its session is blocked, so that it hears of nothing before the lease has run out.
#[tokio::test(start_paused = true)]
async fn lost_hold_deletes_no_other_holders_znode() {
    for kept in [true, false] {
        let simulation = Simulation::with(patient);
        let (one, other) = two_locks(&simulation).await;
        let hold = one.acquire().await.expect("free");
        let lapses = hold.remaining() + Duration::from_millis(100);
        simulation
            .process("one")
            .block_sessions(lapses + Duration::from_millis(400));
        let next = replaced(&simulation, &other).await;
        sleep(lapses).await;
        assert!(!hold.is_held());
        let hold = kept.then_some(hold);
        sleep(TIMEOUT).await;
        assert!(next.is_held(), "kept: {kept}, {:?}", next.state());
        drop(hold);
    }
}

#[tokio::test(start_paused = true)]
async fn release_of_a_hold_that_was_deleted_spares_the_next_holders_znode() {
    let simulation = Simulation::default();
    let (one, other) = two_locks(&simulation).await;
    let hold = one.acquire().await.expect("free");
    let next = replaced(&simulation, &other).await;
    hold.lost().await;
    let released = hold.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    sleep(TIMEOUT).await;
    assert!(next.is_held(), "{:?}", next.state());
}

/// The first deletion comes when the lease has run out, the second when the hold is dropped. The
/// second learns late that the znode is its own.
#[tokio::test(start_paused = true)]
async fn two_deletions_of_a_lost_hold_spare_the_next_holders_znode() {
    let simulation = Simulation::with(patient);
    let (one, other) = two_locks(&simulation).await;
    let hold = one.acquire().await.expect("free");
    let next = tokio::spawn(async move { other.acquire().await });
    sleep(TIMEOUT).await;
    let late = FaultKind::ReplyLate(Duration::from_millis(500));
    let late = Fault::new(late).of_process("one").on(RequestKind::Get);
    simulation.faults().inject(late.under(PATH).nth(2));
    let lapses = hold.remaining() + Duration::from_millis(10);
    simulation.process("one").partition(lapses);
    hold.lost().await;
    sleep(Duration::from_millis(1)).await;
    drop(hold);
    let next = next.await.expect("no panic").expect("its turn");
    sleep(TIMEOUT).await;
    assert!(next.is_held(), "{:?}", next.state());
}

#[tokio::test(start_paused = true)]
async fn znode_of_the_same_session_is_not_taken_for_ones_own() {
    let simulation = Simulation::default();
    let one = lock(&simulation, "one").await;
    let hold = one.acquire().await.expect("free");
    let faults = simulation.faults();
    faults.inject(Fault::new(FaultKind::RequestLost).on(RequestKind::Create));
    let second = one.acquire_timeout(TIMEOUT).await;
    assert_eq!(faults.waiting(), 0, "it was lost");
    assert!(
        matches!(second, Err(Error::DeadlineElapsed { .. })),
        "{second:?}"
    );
    assert!(hold.is_held());
}

/// Its server still shows the old holder's znode when the next holder's exists.
///
/// The hold is too young for a loss watch, whose event would show the deletion to the client.
#[tokio::test(start_paused = true)]
async fn release_whose_answer_was_lost_spares_the_next_holders_znode_at_a_server_that_lags_behind()
{
    let mut lost_answers = 0;
    for seed in 0..100 {
        let simulation = lagging(seed);
        let (one, other) = two_locks(&simulation).await;
        // After this, its next create is sent at once.
        let first = other.acquire().await.expect("free");
        first.release().await.expect("it is held");
        let hold = one.acquire().await.expect("free again");
        let lost = Fault::new(FaultKind::ReplyLost).on(RequestKind::Delete);
        let lost = lost.reconnecting_to(1 + seed as usize % 2);
        simulation.faults().inject(lost);
        drop(hold);
        let lock = PATH[1..].to_owned();
        while simulation.administrator().children("/").contains(&lock) {
            sleep(Duration::from_millis(1)).await;
        }
        let next = other.acquire().await.expect("nobody else wants it");
        sleep(TIMEOUT).await;
        // Over a network as slow as this a lease may lapse.
        lost_answers += 1 - simulation.faults().waiting();
        let deleted = HoldState::Lost(LossReason::Deleted);
        assert_ne!(next.state(), deleted, "seed {seed}");
    }
    assert!(lost_answers > 50, "{lost_answers} answers were lost");
}

/// The client sends it after a reconnect, in the new session that the server has put it into.
#[tokio::test(start_paused = true)]
async fn what_is_sent_late_in_another_session_spares_the_next_holder() {
    let simulation = Simulation::with(|it| {
        patient(it);
        it.forgets_sessions = true;
    });
    let (one, other) = two_locks(&simulation).await;
    let hold = one.acquire().await.expect("free");
    let process = simulation.process("one");
    // The server expires the session before it continues, and the client has not given it up.
    let blocked = TIMEOUT + TICK + TICK / 4;
    process.block_sessions(blocked);
    process.partition(TIMEOUT);
    let mut release = hold.release().boxed();
    assert!((&mut release).now_or_never().is_none(), "it is under way");
    let next = other.acquire().await.expect("its turn");
    sleep(TIMEOUT).await;
    assert!(next.is_held(), "{:?}", next.state());
}
