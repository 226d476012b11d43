//! Attempts that nobody polls for a while, as of a caller that is busy with something else.

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The create and the list are answered in the first session. The attempt is not polled until the
/// server has put the client into another session, and the first one has expired.
#[tokio::test(start_paused = true)]
async fn attempt_that_nobody_polls_past_the_end_of_its_session_does_not_hold() {
    let simulation = simulation!(session_timeout: TIMEOUT, forgets_sessions: true);
    for path in ["/locks", "/locks/a"] {
        make(&simulation, path);
    }
    let queue = async |process| {
        let session = simulated_session(&simulation, process).await;
        lock(&session, "/locks/a")
    };
    let (one, other) = (queue("one").await, queue("other").await);
    let attempt = begun(one.acquire());
    sleep(Duration::from_millis(100)).await;
    simulation.process("one").disconnect();
    let next = timeout(TIMEOUT * 3, other.acquire()).await;
    let next = next.expect("in time").expect("the first session expires");
    let late = timeout(TIMEOUT, attempt).await.expect("in time");
    assert_fails!(late, Error::SessionOver);
    assert!(next.is_held(), "{:?}", next.state());
}

/// A session of a client that its user keeps open.
async fn users_session(simulation: &Simulation) -> Session {
    let client = users_client(simulation, "closing").await;
    let ensemble = users_ensemble(simulation, client);
    open(Arc::new(ensemble), ConnectOptions::new()).await
}

/// A lock of one znode in the session of a user's client, and one of another process.
async fn two_single_nodes(simulation: &Simulation) -> (Session, SingleNodeLock, SingleNodeLock) {
    let closing = users_session(simulation).await;
    let other = simulated_session(simulation, "other").await;
    let lock = |session| single_node(session, "/lock");
    let (mine, others) = (lock(&closing), lock(&other));
    // From now on a create of its session is sent at once.
    take_turn(&mine).await;
    (closing, mine, others)
}

/// Closes the session while an attempt in it is not polled. The result keeps the attempt.
async fn close_in_an_attempt(closing: Session) -> BoxFuture<'static, Result<Hold, Error>> {
    let queue = lock(&closing, "/queue");
    let attempt = begun(async move { queue.acquire().await });
    timeout(TIMEOUT, closing.close()).await.expect("it closes");
    sleep(TIMEOUT).await;
    attempt
}

/// Its create finds the znode of another holder, and the attempt is not polled.
#[tokio::test(start_paused = true)]
async fn close_spares_the_single_znode_of_another_holder() {
    let simulation = Simulation::default();
    let (closing, mine, others) = two_single_nodes(&simulation).await;
    let hold = others.acquire().await.expect("free again");
    let attempt = begun(mine.acquire());
    timeout(TIMEOUT, closing.close()).await.expect("it closes");
    sleep(TIMEOUT).await;
    assert!(hold.is_held(), "{:?}", hold.state());
    drop(attempt);
}

/// The view of a hold that was released says which znode it was.
#[tokio::test(start_paused = true)]
async fn close_spares_the_next_holder_of_a_single_znode_of_which_a_view_is_kept() {
    let simulation = Simulation::default();
    let (closing, mine, others) = two_single_nodes(&simulation).await;
    let released = mine.acquire().await.expect("free again");
    let view = released.view();
    released.release().await.expect("it is held");
    let hold = others.acquire().await.expect("free again");
    let attempt = close_in_an_attempt(closing).await;
    assert!(hold.is_held(), "{:?}", hold.state());
    drop((attempt, view));
}

/// The owner keeps the hold or a view of it, and has noticed the deletion or not.
#[tokio::test(start_paused = true)]
async fn close_spares_the_next_holder_of_a_single_znode_that_was_deleted_by_hand() {
    for (is_noticed, is_released) in [(true, false), (true, true), (false, false)] {
        let simulation = Simulation::default();
        let (closing, mine, others) = two_single_nodes(&simulation).await;
        let hold = mine.acquire().await.expect("free again");
        let view = hold.view();
        delete(&simulation, "/lock");
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
        let attempt = close_in_an_attempt(closing).await;
        let state = next.state();
        assert!(next.is_held(), "{is_noticed}, {is_released}: {state:?}");
        drop((attempt, kept, view));
    }
}

#[tokio::test(start_paused = true)]
async fn single_znode_is_not_created_after_its_session_is_closed() {
    let simulation = Simulation::default();
    let closing = users_session(&simulation).await;
    let mut znode = begin_single(&closing).await;
    timeout(TIMEOUT, closing.close()).await.expect("it closes");
    let created = znode.create(b"").await;
    assert_fails!(created, Error::SessionOver);
    let children = simulation.administrator().children("/");
    assert!(!children.contains(&SINGLE[1..].to_owned()));
}

/// Its create succeeds, and nobody looks at the answer.
#[tokio::test(start_paused = true)]
async fn close_deletes_a_single_znode_of_its_own() {
    let simulation = Simulation::default();
    let (closing, mine, others) = two_single_nodes(&simulation).await;
    let attempt = begun(mine.acquire());
    timeout(TIMEOUT, closing.close()).await.expect("it closes");
    let next = timeout(TIMEOUT, others.acquire()).await;
    release(next.expect("in time").expect("free again")).await;
    drop(attempt);
}

#[tokio::test(start_paused = true)]
async fn attempt_that_nobody_polls_keeps_no_other_attempt_of_its_session_waiting() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let queue = |path| queue_by(&session, path, FIRST_ALONE);
    let (one, other) = (queue("/locks/a"), queue("/locks/b"));
    let attempt = begun(one.acquire());
    let hold = timeout(TIMEOUT, other.acquire()).await;
    let hold = hold.expect("in time").expect("free");
    hold.release().await.expect("it is held");
    let hold = attempt.await.expect("free");
    hold.release().await.expect("it is held");
}

/// The lease runs out before anybody looks at the answer to the deletion.
#[tokio::test(start_paused = true)]
async fn release_that_nobody_polls_keeps_no_lost_single_znode() {
    let simulation = simulation!(session_timeout: TIMEOUT);
    let (closing, mine, others) = two_single_nodes(&simulation).await;
    let hold = mine.acquire().await.expect("free again");
    sleep(TIMEOUT).await;
    let lapses = hold.remaining() + Duration::from_millis(10);
    let lost = Fault::new(FaultKind::RequestLost).on(RequestKind::Delete);
    simulation.faults().inject(lost.of_process("closing"));
    let view = hold.view();
    let release = begun(hold.release());
    simulation.process("closing").partition(lapses);
    let next = timeout(TIMEOUT * 3, others.acquire()).await;
    let next = next.expect("in time").expect("the lost one bars nobody");
    assert!(next.is_held() && !view.is_held());
    assert!(closing.is_connected());
    drop(release);
}
