//! Attempts that nobody polls for a while, as of a caller that is busy with something else.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{Directories, Error, Queue, Session};
use zookeeper_recipes_lock::SingleNodeLock;
use zookeeper_recipes_simulation::{
    Fault, FaultKind, RequestKind, ServerSettings, Simulation, SimulationOptions,
};
use zookeeper_recipes_suite::simulated_session;

use crate::altered_ensemble::{Alterations, UsersClient, altered};
use crate::support::{self, FIRST, FIRST_ALONE, make};

const TIMEOUT: Duration = Duration::from_secs(10);

/// The create and the list are answered in the first session. The attempt is not polled until the
/// server has put the client into another session, and the first one has expired.
#[tokio::test(start_paused = true)]
async fn attempt_that_nobody_polls_past_the_end_of_its_session_does_not_hold() {
    let simulation = Simulation::new(SimulationOptions {
        session_timeout: TIMEOUT,
        forgets_sessions: true,
        ..SimulationOptions::default()
    });
    let _administrator = simulation.administrator();
    for path in ["/locks", "/locks/a"] {
        make(&simulation, path);
    }
    let queue = async |process| {
        let session = simulated_session(&simulation, process).await;
        Queue::new(&session, "/locks/a", FIRST).expect("a good path")
    };
    let (one, other) = (queue("one").await, queue("other").await);
    let mut attempt = one.acquire().boxed();
    assert!((&mut attempt).now_or_never().is_none(), "it is under way");
    sleep(Duration::from_millis(100)).await;
    simulation.process("one").disconnect();
    let next = timeout(TIMEOUT * 3, other.acquire()).await;
    let next = next.expect("in time").expect("the first session expires");
    let late = timeout(TIMEOUT, attempt).await.expect("in time");
    assert!(matches!(late, Err(Error::SessionOver { .. })), "{late:?}");
    assert!(next.is_held(), "{:?}", next.state());
}

/// A session of a client that its user keeps open.
async fn users_session(simulation: &Simulation) -> Session {
    let alterations = Alterations {
        stays_open: Some(UsersClient::default()),
        ..Alterations::default()
    };
    altered(simulation, "closing", alterations).await
}

/// A lock of one znode in the session of a user's client, and one of another process.
async fn two_single_nodes(simulation: &Simulation) -> (Session, SingleNodeLock, SingleNodeLock) {
    let closing = users_session(simulation).await;
    let other = simulated_session(simulation, "other").await;
    let lock = |session| SingleNodeLock::new(session, "/lock").expect("a good path");
    let (mine, others) = (lock(&closing), lock(&other));
    // From now on a create of its session is sent at once.
    let first = mine.acquire().await.expect("free");
    first.release().await.expect("it is held");
    (closing, mine, others)
}

/// Its create finds the znode of another holder, and the attempt is not polled.
#[tokio::test(start_paused = true)]
async fn close_spares_the_single_znode_of_another_holder() {
    let simulation = Simulation::new(SimulationOptions::default());
    let (closing, mine, others) = two_single_nodes(&simulation).await;
    let hold = others.acquire().await.expect("free again");
    let mut attempt = mine.acquire().boxed();
    assert!((&mut attempt).now_or_never().is_none(), "it is under way");
    timeout(TIMEOUT, closing.close()).await.expect("it closes");
    sleep(TIMEOUT).await;
    assert!(hold.is_held(), "{:?}", hold.state());
    drop(attempt);
}

/// The view of a hold that was released says which znode it was.
#[tokio::test(start_paused = true)]
async fn close_spares_the_next_holder_of_a_single_znode_of_which_a_view_is_kept() {
    let simulation = Simulation::new(SimulationOptions::default());
    let (closing, mine, others) = two_single_nodes(&simulation).await;
    let released = mine.acquire().await.expect("free again");
    let view = released.view();
    released.release().await.expect("it is held");
    let hold = others.acquire().await.expect("free again");
    let queue = Queue::new(&closing, "/queue", FIRST).expect("a good path");
    let mut attempt = queue.acquire().boxed();
    assert!((&mut attempt).now_or_never().is_none(), "it is under way");
    timeout(TIMEOUT, closing.close()).await.expect("it closes");
    sleep(TIMEOUT).await;
    assert!(hold.is_held(), "{:?}", hold.state());
    drop((attempt, view));
}

/// The owner keeps the hold or a view of it, and has noticed the deletion or not.
#[tokio::test(start_paused = true)]
async fn close_spares_the_next_holder_of_a_single_znode_that_was_deleted_by_hand() {
    for (is_noticed, is_released) in [(true, false), (true, true), (false, false)] {
        let simulation = Simulation::new(SimulationOptions::default());
        let (closing, mine, others) = two_single_nodes(&simulation).await;
        let hold = mine.acquire().await.expect("free again");
        let view = hold.view();
        simulation
            .administrator()
            .delete("/lock")
            .expect("it exists");
        let next = others.acquire().await.expect("free again");
        if is_noticed {
            hold.lost().await;
        }
        let kept = match is_released {
            true => {
                hold.release().await.expect_err("it is lost");
                None
            }
            false => Some(hold),
        };
        assert_eq!(view.is_held(), !is_noticed);
        let queue = Queue::new(&closing, "/queue", FIRST).expect("a good path");
        let mut attempt = queue.acquire().boxed();
        assert!((&mut attempt).now_or_never().is_none(), "it is under way");
        timeout(TIMEOUT, closing.close()).await.expect("it closes");
        sleep(TIMEOUT).await;
        let state = next.state();
        assert!(next.is_held(), "{is_noticed}, {is_released}: {state:?}");
        drop((attempt, kept, view));
    }
}

#[tokio::test(start_paused = true)]
async fn single_znode_is_not_created_after_its_session_is_closed() {
    let simulation = Simulation::new(SimulationOptions::default());
    let closing = users_session(&simulation).await;
    let znode = support::begin_single(&closing).await;
    timeout(TIMEOUT, closing.close()).await.expect("it closes");
    let created = znode
        .create(b"", &support::everyone(), Directories::Container)
        .await;
    assert!(
        matches!(created, Err(Error::SessionOver { .. })),
        "{created:?}"
    );
    let children = simulation.administrator().children("/");
    assert!(!children.contains(&support::SINGLE[1..].to_owned()));
}

/// Its create succeeds, and nobody looks at the answer.
#[tokio::test(start_paused = true)]
async fn close_deletes_a_single_znode_of_its_own() {
    let simulation = Simulation::new(SimulationOptions::default());
    let (closing, mine, others) = two_single_nodes(&simulation).await;
    let mut attempt = mine.acquire().boxed();
    assert!((&mut attempt).now_or_never().is_none(), "it is under way");
    timeout(TIMEOUT, closing.close()).await.expect("it closes");
    let next = timeout(TIMEOUT, others.acquire()).await;
    next.expect("in time")
        .expect("free again")
        .release()
        .await
        .expect("it is held");
    drop(attempt);
}

#[tokio::test(start_paused = true)]
async fn attempt_that_nobody_polls_keeps_no_other_attempt_of_its_session_waiting() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    let queue = |path| Queue::new(&session, path, FIRST_ALONE).expect("a good path");
    let (one, other) = (queue("/locks/a"), queue("/locks/b"));
    let mut attempt = one.acquire().boxed();
    assert!((&mut attempt).now_or_never().is_none(), "it is under way");
    let hold = timeout(TIMEOUT, other.acquire()).await;
    let hold = hold.expect("in time").expect("free");
    hold.release().await.expect("it is held");
    let hold = attempt.await.expect("free");
    hold.release().await.expect("it is held");
}

/// The lease runs out before anybody looks at the answer to the deletion.
#[tokio::test(start_paused = true)]
async fn release_that_nobody_polls_keeps_no_lost_single_znode() {
    let simulation = Simulation::new(SimulationOptions {
        session_timeout: TIMEOUT,
        ..SimulationOptions::default()
    });
    let (closing, mine, others) = two_single_nodes(&simulation).await;
    let hold = mine.acquire().await.expect("free again");
    sleep(TIMEOUT).await;
    let lapses = hold.remaining() + Duration::from_millis(10);
    let lost = Fault::new(FaultKind::RequestLost).on(RequestKind::Delete);
    simulation.faults().inject(lost.of_process("closing"));
    let view = hold.view();
    let mut release = hold.release().boxed();
    assert!((&mut release).now_or_never().is_none(), "it is under way");
    simulation.process("closing").partition(lapses);
    let next = timeout(TIMEOUT * 3, others.acquire()).await;
    let next = next.expect("in time").expect("the lost one bars nobody");
    assert!(next.is_held() && !view.is_held());
    assert!(closing.is_connected());
    drop(release);
}

/// The lease runs out before anybody looks at the answer to the transaction.
#[tokio::test(start_paused = true)]
async fn replacement_that_nobody_polls_keeps_no_lost_hold() {
    let simulation = Simulation::new(SimulationOptions {
        session_timeout: TIMEOUT,
        ..SimulationOptions::default()
    });
    let session = simulated_session(&simulation, "one").await;
    let other = simulated_session(&simulation, "other").await;
    let queue = |session| Queue::new(session, "/locks/a", FIRST).expect("a good path");
    let hold = queue(&session).acquire().await.expect("free");
    let beside = SingleNodeLock::new(&session, "/beside").expect("a good path");
    let beside = beside.acquire().await.expect("free");
    sleep(TIMEOUT).await;
    let everyone = support::everyone();
    let replacement = hold.replace("lock-", "lock-", b"", &everyone);
    let mut replacement = replacement.boxed();
    assert!((&mut replacement).now_or_never().is_none(), "under way");
    sleep(Duration::from_millis(100)).await;
    let lapses = beside.remaining() + Duration::from_millis(10);
    simulation.process("one").partition(lapses);
    let next = timeout(TIMEOUT * 3, queue(&other).acquire()).await;
    let next = next.expect("in time").expect("the lost one bars nobody");
    assert!(next.is_held() && !beside.is_held());
    session.wait_connected().await.expect("it has not expired");
    assert_eq!(session.id(), Some(beside.session_id()));
    let late = replacement.await;
    assert!(matches!(late, Err(Error::Lost { .. })), "{late:?}");
}

/// A server shortens the timeout of a session, which ends for that. The attempt keeps its server
/// side open.
#[tokio::test(start_paused = true)]
async fn session_that_ends_for_a_shortened_timeout_bars_nobody_though_an_attempt_is_not_polled() {
    let simulation = Simulation::new(SimulationOptions {
        session_timeout: TIMEOUT,
        ..SimulationOptions::default()
    });
    let queue = async |process, path| {
        let session = simulated_session(&simulation, process).await;
        Queue::new(&session, path, FIRST).expect("a good path")
    };
    let other = queue("other", "/locks/a").await;
    let busy = queue("other", "/locks/busy").await;
    let busy = busy.acquire().await.expect("free");
    let session = simulated_session(&simulation, "one").await;
    let one = |path| Queue::new(&session, path, FIRST).expect("a good path");
    let (held, waits) = (one("/locks/a"), one("/locks/busy"));
    let hold = held.acquire().await.expect("free");
    let mut attempt = waits.acquire().boxed();
    assert!(timeout(TIMEOUT, &mut attempt).await.is_err(), "it waits");
    let settings = ServerSettings {
        tick: SimulationOptions::default().tick,
        min_session_timeout: None,
        max_session_timeout: Some(TIMEOUT / 2),
    };
    simulation.faults().restart(settings, TIMEOUT / 10);
    hold.lost().await;
    let lost = hold.release().await;
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    // The session of the other process ends, too.
    let next = loop {
        match timeout(TIMEOUT * 30, other.acquire())
            .await
            .expect("in time")
        {
            Ok(next) => break next,
            Err(error) => assert!(matches!(error, Error::SessionOver { .. }), "{error}"),
        }
    };
    assert!(next.is_held(), "{:?}", next.state());
    drop((attempt, busy));
}
