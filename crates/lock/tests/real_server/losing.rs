//! Holders and waiters that die, are deleted, or lose their session.

use std::time::{Duration, Instant};

use zookeeper_recipes_lock::common::{AfterSessionLoss, SessionEnd};
use zookeeper_recipes_lock::{Error, ExclusiveLock, HoldState, LockOptions, LossReason, Session};
use zookeeper_recipes_suite::{
    PATIENCE, TICK, administrator, create, eventually, queue_length, server, session,
};

use crate::support::{SESSION_TIMEOUT, assert_nothing_left};

/// Set for the child process that is to hold the lock until it is killed.
const HOLDER: &str = "ZOOKEEPER_RECIPES_TEST_HOLDER";

fn lock(session: &Session) -> ExclusiveLock {
    ExclusiveLock::new(session, "/locks/lost").expect("a good path")
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_gets_the_lock_when_the_holders_process_is_killed() {
    if let Ok(connect_string) = std::env::var(HOLDER) {
        let options =
            zookeeper_recipes_lock::ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
        let session = Session::connect_with(&connect_string, options)
            .await
            .expect("a session");
        let _hold = lock(&session).acquire().await.expect("nobody is before it");
        return std::future::pending().await;
    }
    let server = server().await;
    let mut holder = tokio::process::Command::new(std::env::current_exe().expect("a test binary"))
        .args([
            "--exact",
            "losing::waiter_gets_the_lock_when_the_holders_process_is_killed",
        ])
        .env(HOLDER, server.connect_string())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the holder starts");
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = lock(&session);
    queue_length(&lock, 1).await;
    let waiter = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await }
    });
    queue_length(&lock, 2).await;
    holder.kill().await.expect("the holder can be killed");
    let killed = Instant::now();
    let hold = waiter
        .await
        .expect("no panic")
        .expect("the lock is acquired");
    let gap = killed.elapsed();
    assert!(
        gap <= SESSION_TIMEOUT + 2 * TICK,
        "the lock was free for {gap:?}"
    );
    hold.release().await.expect("the lock is released");
    assert_nothing_left(&server, "/locks/lost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_gets_the_lock_at_once_when_the_holders_session_is_closed() {
    let server = server().await;
    let (holder, other) = (
        session(&server, SESSION_TIMEOUT).await,
        session(&server, SESSION_TIMEOUT).await,
    );
    let hold = lock(&holder).acquire().await.expect("nobody is before it");
    let waiter = tokio::spawn({
        let lock = lock(&other);
        async move { lock.acquire().await }
    });
    queue_length(&lock(&other), 2).await;
    let closing = Instant::now();
    holder.close().await;
    assert_eq!(hold.lost().await, LossReason::Session(SessionEnd::Closed));
    let _next = waiter
        .await
        .expect("no panic")
        .expect("the lock is acquired");
    let gap = closing.elapsed();
    assert!(
        gap < SESSION_TIMEOUT / 2,
        "far sooner than by expiry: {gap:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_in_the_middle_that_goes_lets_nobody_in_and_forgets_nobody() {
    #[derive(Clone, Copy, Debug)]
    enum Going {
        Dropped,
        Deadline,
        SessionExpired,
        DeletedByHand,
    }
    let server = server().await;
    let client = administrator(&server).await;
    for going in [
        Going::Dropped,
        Going::Deadline,
        Going::SessionExpired,
        Going::DeletedByHand,
    ] {
        let (first, middle, last) = (
            session(&server, SESSION_TIMEOUT).await,
            session(&server, SESSION_TIMEOUT).await,
            session(&server, SESSION_TIMEOUT).await,
        );
        let hold = lock(&first).acquire().await.expect("nobody is before it");
        let middle_lock = lock(&middle);
        let middle_waits = tokio::spawn(async move {
            match going {
                Going::Deadline => middle_lock.acquire_timeout(Duration::from_secs(2)).await,
                _ => middle_lock.acquire().await,
            }
        });
        queue_length(&lock(&first), 2).await;
        let middle_path = format!(
            "/locks/lost/{}",
            lock(&first)
                .contenders()
                .await
                .expect("the queue can be read")[1]
                .name
        );
        let last_lock = lock(&last);
        let mut last_waits = tokio::spawn(async move { last_lock.acquire().await });
        queue_length(&lock(&first), 3).await;

        match going {
            Going::Dropped => middle_waits.abort(),
            Going::Deadline => {}
            Going::SessionExpired => {
                let id = middle.id().expect("it is open");
                server
                    .expire_session(id.0)
                    .await
                    .expect("a session can be expired");
            }
            Going::DeletedByHand => {
                client
                    .delete(&middle_path, None)
                    .await
                    .expect("it is there");
            }
        }
        let result = middle_waits.await;
        match (going, result) {
            (Going::Dropped, Err(error)) if error.is_cancelled() => {}
            (Going::Deadline, Ok(Err(Error::DeadlineElapsed { .. }))) => {}
            (Going::SessionExpired, Ok(Err(Error::SessionOver { reason, .. }))) => {
                assert_eq!(reason, SessionEnd::Expired);
            }
            (Going::DeletedByHand, Ok(Err(Error::ContenderDeleted { path, .. }))) => {
                assert_eq!(path, middle_path);
            }
            (going, result) => panic!("{going:?}: {result:?}"),
        }
        queue_length(&lock(&first), 2).await;
        assert!(hold.is_held());
        // The last one has been woken and watches again; it must not have been let in.
        eventually("the last watches the first", || async {
            let watches = server.watches().await.expect("the server answers");
            watches.contains_key(hold.node_path()) && !last_waits.is_finished()
        })
        .await;
        hold.release().await.expect("the lock is released");
        let hold = tokio::time::timeout(PATIENCE, &mut last_waits)
            .await
            .expect("the last is not forgotten")
            .expect("no panic")
            .expect("the lock is acquired");
        hold.release().await.expect("the lock is released");
        for session in [first, middle, last] {
            session.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_whose_znode_is_deleted_by_hand_learns_it() {
    let server = server().await;
    let client = administrator(&server).await;
    create(&client, "/stored").await;
    let (first, second) = (
        session(&server, SESSION_TIMEOUT).await,
        session(&server, SESSION_TIMEOUT).await,
    );
    let uncontended = lock(&first).acquire().await.expect("nobody is before it");
    let waiter = tokio::spawn({
        let lock = lock(&second);
        async move { lock.acquire().await }
    });
    queue_length(&lock(&first), 2).await;
    // One that never waited, and then one that did.
    client
        .delete(uncontended.node_path(), None)
        .await
        .expect("it is there");
    let contended = waiter
        .await
        .expect("no panic")
        .expect("the lock is acquired");
    client
        .delete(contended.node_path(), None)
        .await
        .expect("it is there");
    for hold in [uncontended, contended] {
        let reason = tokio::time::timeout(PATIENCE, hold.lost())
            .await
            .expect("it is told");
        assert_eq!(reason, LossReason::Deleted);
        assert_eq!(hold.state(), HoldState::Lost(LossReason::Deleted));
        let written = hold
            .transaction()
            .set_data("/stored", b"stale")
            .commit()
            .await;
        assert!(
            matches!(written, Err(Error::Lost { .. })),
            "refused by the server: {written:?}"
        );
        let (data, stat) = client.get_data("/stored").await.expect("it is there");
        assert!(data.is_empty() && stat.version == 0, "nothing was changed");
        assert!(matches!(hold.release().await, Err(Error::Lost { .. })));
    }
    assert_nothing_left(&server, "/locks/lost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_write_passes_while_the_lock_is_held() {
    let server = server().await;
    let client = administrator(&server).await;
    create(&client, "/stored").await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let hold = lock(&session).acquire().await.expect("nobody is before it");
    hold.transaction()
        .set_data("/stored", b"fresh")
        .commit()
        .await
        .expect("it is held");
    let (data, _) = client.get_data("/stored").await.expect("it is there");
    assert_eq!(data, b"fresh");
    let refused = hold.transaction().set_data("/absent", b"").commit().await;
    assert!(
        matches!(&refused, Err(Error::Refused { path, .. }) if path == "/absent"),
        "the error names the operation that was refused: {refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_lost_with_its_session_and_the_lock_works_in_the_next_one() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = lock(&session);
    let hold = lock.acquire().await.expect("nobody is before it");
    let first = session.id().expect("it is open");
    server
        .expire_session(first.0)
        .await
        .expect("a session can be expired");
    let reason = tokio::time::timeout(PATIENCE, hold.lost())
        .await
        .expect("it is told");
    assert!(matches!(
        reason,
        LossReason::Session(SessionEnd::Expired) | LossReason::LeaseElapsed
    ));
    assert!(!hold.is_held());
    drop(hold);
    let again = lock
        .acquire_timeout(PATIENCE)
        .await
        .expect("in a new session");
    assert_ne!(again.session_id(), first);
    again.release().await.expect("the lock is released");
    assert_nothing_left(&server, "/locks/lost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_that_wants_to_queues_anew_after_the_loss_of_its_session() {
    let server = server().await;
    let (first, second) = (
        session(&server, SESSION_TIMEOUT).await,
        session(&server, SESSION_TIMEOUT).await,
    );
    let hold = lock(&first).acquire().await.expect("nobody is before it");
    let options = LockOptions::new().after_session_loss(AfterSessionLoss::QueueAnew);
    let patient = ExclusiveLock::with_options(&second, "/locks/lost", options).expect("good");
    let waiter = tokio::spawn(async move { patient.acquire().await });
    queue_length(&lock(&first), 2).await;
    let old = second.id().expect("it is open");
    server
        .expire_session(old.0)
        .await
        .expect("a session can be expired");
    eventually("it queues in a new session", || async {
        let contenders = lock(&first)
            .contenders()
            .await
            .expect("the queue can be read");
        contenders.len() == 2 && contenders[1].session_id != old
    })
    .await;
    hold.release().await.expect("the lock is released");
    let hold = waiter
        .await
        .expect("no panic")
        .expect("the lock is acquired");
    assert_ne!(hold.session_id(), old);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_finish_and_none_twice_when_the_server_is_restarted() {
    let mut server = server().await;
    // Long enough that starting a server on a busy machine does not outlast the lease.
    let timeout = Duration::from_secs(30);
    let (first, second, third) = (
        session(&server, timeout).await,
        session(&server, timeout).await,
        session(&server, timeout).await,
    );
    let hold = lock(&first).acquire().await.expect("nobody is before it");
    let waiters = [&second, &third].map(|session| {
        let lock = lock(session);
        tokio::spawn(async move {
            let hold = lock.acquire().await.expect("the lock is acquired");
            let token = hold.fencing_token();
            hold.release().await.expect("the lock is released");
            token
        })
    });
    queue_length(&lock(&first), 3).await;
    let token = hold.fencing_token();
    server.kill().await.expect("it can be killed");
    server.restart().await.expect("it starts again");
    eventually("the server is back", || async {
        hold.state() == HoldState::Held
    })
    .await;
    hold.release().await.expect("the lock is released");
    let [second_token, third_token] = waiters.map(|waiter| async {
        tokio::time::timeout(PATIENCE, waiter)
            .await
            .expect("in time")
            .expect("no panic")
    });
    let (second_token, third_token) = (second_token.await, third_token.await);
    assert!(token < second_token && token < third_token && second_token != third_token);
    assert_nothing_left(&server, "/locks/lost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_suspended_while_the_server_is_paused_and_lost_before_the_session_can_expire() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let hold = lock(&session).acquire().await.expect("nobody is before it");
    assert_eq!(hold.state(), HoldState::Held);
    assert!(hold.remaining() > Duration::ZERO && hold.remaining() <= SESSION_TIMEOUT);
    server.pause().expect("it can be paused");
    let paused = Instant::now();
    eventually("it is suspended", || async {
        hold.state() == HoldState::Suspended
    })
    .await;
    assert!(hold.is_held(), "it may live on");
    let reason = tokio::time::timeout(PATIENCE, hold.lost())
        .await
        .expect("it is told");
    assert_eq!(reason, LossReason::LeaseElapsed);
    let told = paused.elapsed();
    assert!(
        told < SESSION_TIMEOUT,
        "before the server could expire the session: {told:?}"
    );
    assert_eq!(hold.remaining(), Duration::ZERO);
    server.resume().expect("it goes on");
    eventually("the session is there again", || async {
        session.timeout().is_some() && session.id().is_some()
    })
    .await;
    assert!(!hold.is_held(), "what is lost stays lost");
    drop(hold);
    assert_nothing_left(&server, "/locks/lost").await;
}
