//! Sessions that one process leaves to another, with their holds.

use std::time::Duration;

use tokio::time::Instant;
use zookeeper_client::{Acl, AuthId, Permission};
use zookeeper_recipes_core::{
    ConnectOptions, DetachedSession, Error, Hold, HoldState, LossReason, Recipe, Session,
    SessionEnd, SessionState,
};
use zookeeper_recipes_suite::{
    Address, KINDS, Kind, LOCK, LONG, SEMAPHORE, SHORT, TICK, TestServer, administrator,
    assert_directory_empty, assert_no_watch_left, children, eventually, exists, in_time,
    on_both_servers, proxy, queue_length, session,
};

on_both_servers!(
    hold_of_each_kind_goes_to_the_next_process_and_to_nobody_in_between,
    holds_of_one_kind_all_go_to_the_next_process,
    waiters_and_other_holds_of_the_first_process_go,
    detached_session_is_good_for_one_process,
    hold_that_nobody_takes_is_released,
    expired_session_is_replaced_by_a_new_one,
    hold_under_a_write_without_an_answer_is_not_left,
    session_can_be_left_more_than_once,
    znode_that_was_deleted_meanwhile_is_no_hold,
    what_cannot_be_left_is_refused_and_released,
    session_is_left_where_the_root_refuses_the_ticket,
);

const PATH: &str = "/left/lock";

fn options(timeout: Duration) -> ConnectOptions {
    ConnectOptions::new().session_timeout(timeout).tick(TICK)
}

/// The next process, which gets the detached session as a text.
async fn next(
    at: &(impl Address + ?Sized),
    timeout: Duration,
    detached: &DetachedSession,
) -> Session {
    let detached = DetachedSession::from_secret(&detached.to_secret()).expect("it is well formed");
    let address = at.address();
    let resuming = Session::resume(&address, options(timeout), &detached);
    in_time("the session is resumed", resuming)
        .await
        .expect("the server answers")
}

async fn acquired(recipe: &dyn Recipe) -> Hold {
    let acquiring = in_time("it is acquired", recipe.acquire());
    acquiring.await.expect("it is acquired")
}

/// A hold of the lock in this session.
async fn locked(session: &Session) -> Hold {
    acquired(&*LOCK.at(session, PATH, 1)).await
}

/// The session of a first process that has ended, with its hold, and the path of the holder's znode.
async fn left(server: &TestServer, timeout: Duration) -> (DetachedSession, String) {
    let first = session(server, timeout).await;
    let hold = locked(&first).await;
    let path = hold.node_path().to_owned();
    (first.detach([hold]).await.expect("it is held"), path)
}

fn kinds() -> impl Iterator<Item = Kind> {
    KINDS.iter().copied().filter(|kind| kind.recipe.queues)
}

async fn hold_of_each_kind_goes_to_the_next_process_and_to_nobody_in_between(server: TestServer) {
    const SCENARIO: &str = "left";
    let first = session(&server, LONG).await;
    let rivals = session(&server, LONG).await;
    let mut left = Vec::new();
    let mut waiting = Vec::new();
    for kind in kinds() {
        let hold = acquired(&*kind.on(&first, SCENARIO)).await;
        let rival = kind.rival_on(&rivals, SCENARIO);
        waiting.push(tokio::spawn(async move { rival.acquire().await }));
        queue_length(&*kind.on(&rivals, SCENARIO), 2).await;
        left.push(hold);
    }
    let (before, id) = (first.clone(), first.id());
    let views: Vec<_> = left.iter().map(|hold| hold.view()).collect();
    let detached = first.detach(left).await.expect("they are held");
    assert_eq!(Some(detached.session_id()), id);
    for view in &views {
        assert_eq!(view.state(), HoldState::Released);
    }
    eventually("the handle is over", async || {
        before.state() == SessionState::Ended(SessionEnd::Detached)
    })
    .await;
    let second = next(&server, LONG, &detached).await;
    assert_eq!(second.id(), id);
    let mut holds = Vec::new();
    for (number, (kind, view)) in kinds().zip(&views).enumerate() {
        let recipe = kind.on(&second, SCENARIO);
        // A try takes it as well as an attempt that waits.
        let hold = match number % 2 {
            0 => recipe.try_acquire().await.expect("the server answers"),
            _ => Some(acquired(&*recipe).await),
        };
        let hold = hold.unwrap_or_else(|| panic!("{}: not taken", kind.name));
        assert_eq!(hold.node_path(), view.node_path());
        assert!(hold.fencing_token() > view.fencing_token(), "{}", kind.name);
        holds.push(hold);
    }
    for ((kind, hold), waiting) in kinds().zip(holds).zip(waiting) {
        assert!(!waiting.is_finished(), "{}: the rival holds", kind.name);
        let token = hold.fencing_token();
        hold.release().await.expect("it is released");
        let what = format!("{}: the rival holds then", kind.name);
        let next = in_time(&what, waiting).await.expect("no panic");
        let next = next.expect("it is acquired");
        assert!(next.fencing_token() > token, "{}", kind.name);
        next.release().await.expect("it is released");
        let client = administrator(&server).await;
        assert_directory_empty(&client, &kind.directory(SCENARIO)).await;
    }
    assert_no_watch_left(&server).await;
}

async fn holds_of_one_kind_all_go_to_the_next_process(server: TestServer) {
    let first = session(&server, LONG).await;
    let permits = |session: &Session| SEMAPHORE.at(session, PATH, 2);
    let holds = [
        acquired(&*permits(&first)).await,
        acquired(&*permits(&first)).await,
    ];
    let paths = holds.each_ref().map(|hold| hold.node_path().to_owned());
    let detached = first.detach(holds).await.expect("they are held");
    assert!(detached.holds().eq(&paths));
    let second = next(&server, LONG, &detached).await;
    let mut held = Vec::new();
    for path in paths {
        let hold = acquired(&*permits(&second)).await;
        assert_eq!(hold.node_path(), path);
        held.push(hold);
    }
    // All five permits but one are held.
    let tried = permits(&second).try_acquire().await;
    assert!(tried.expect("the server answers").is_none());
}

async fn waiters_and_other_holds_of_the_first_process_go(server: TestServer) {
    const OTHER: &str = "/left/other";
    let first = session(&server, LONG).await;
    let hold = locked(&first).await;
    let other = acquired(&*LOCK.at(&first, OTHER, 1)).await;
    let waiter = LOCK.at(&first, PATH, 1);
    let waiting = tokio::spawn(async move { waiter.acquire().await });
    queue_length(&*LOCK.at(&first, PATH, 1), 2).await;
    let detached = first.detach([hold]).await.expect("it is held");
    let reason = LossReason::Session(SessionEnd::Detached);
    assert_eq!(other.state(), HoldState::Lost(reason));
    let waited = in_time("the waiter learns of it", waiting).await;
    let error = waited.expect("no panic").expect_err("its session is over");
    assert!(matches!(
        error,
        Error::SessionOver {
            reason: SessionEnd::Detached,
            ..
        }
    ));
    let client = administrator(&server).await;
    assert_directory_empty(&client, OTHER).await;
    assert_eq!(children(&client, PATH).await.len(), 1);
    let second = next(&server, LONG, &detached).await;
    eventually("the ticket is deleted", async || {
        let at_the_root = children(&client, "/").await;
        at_the_root.iter().all(|name| !name.contains("detached"))
    })
    .await;
    second.close().await;
}

async fn detached_session_is_good_for_one_process(server: TestServer) {
    let (detached, _) = left(&server, LONG).await;
    let second = next(&server, LONG, &detached).await;
    let hold = locked(&second).await;
    let third = next(&server, LONG, &detached).await;
    assert_ne!(third.id(), second.id(), "it has a session of its own");
    let lock = LOCK.at(&third, PATH, 1);
    assert!(lock.try_acquire().await.expect("an answer").is_none());
    eventually("the first hold lasts", async || {
        assert!(hold.is_held());
        hold.state() == HoldState::Held
    })
    .await;
    assert_eq!(second.id(), Some(detached.session_id()));
    hold.release().await.expect("it is released");
    acquired(&*lock).await.release().await.expect("it is free");
}

async fn hold_that_nobody_takes_is_released(server: TestServer) {
    let first = session(&server, SHORT).await;
    let rival = session(&server, LONG).await;
    let hold = locked(&first).await;
    let lock = LOCK.at(&rival, PATH, 1);
    let waiting = tokio::spawn(async move { lock.acquire().await });
    queue_length(&*LOCK.at(&rival, PATH, 1), 2).await;
    let detached = first.detach([hold]).await.expect("it is held");
    let second = next(&server, SHORT, &detached).await;
    let began = Instant::now();
    let granted = in_time("the rival holds", waiting).await.expect("no panic");
    let _rival = granted.expect("it is acquired");
    assert!(began.elapsed() >= SHORT - TICK, "{:?}", began.elapsed());
    assert_eq!(
        second.id(),
        Some(detached.session_id()),
        "the session continues"
    );
}

async fn expired_session_is_replaced_by_a_new_one(server: TestServer) {
    let (detached, path) = left(&server, SHORT).await;
    let client = administrator(&server).await;
    eventually("the session expires", async || {
        !exists(&client, &path).await
    })
    .await;
    let second = next(&server, SHORT, &detached).await;
    assert_ne!(second.id(), Some(detached.session_id()));
    let hold = locked(&second).await;
    assert_ne!(hold.node_path(), path);
}

async fn hold_under_a_write_without_an_answer_is_not_left(server: TestServer) {
    const DATA: &str = "/left-data";
    let client = administrator(&server).await;
    zookeeper_recipes_suite::create(&client, DATA).await;
    let proxy = proxy(&server).await;
    let first = session(&proxy, LONG).await;
    let kept = locked(&first).await;
    let written = acquired(&*LOCK.at(&first, "/left/written", 1)).await;
    // The future is dropped before its answer, so it is unknown whether the write is done.
    proxy.freeze();
    let sent = written.transaction().set_data(DATA, b"late").commit();
    let none = tokio::time::timeout(Duration::ZERO, sent).await;
    assert!(none.is_err(), "no answer passes the proxy");
    proxy.thaw();
    let left = [kept, written];
    let path = left[0].node_path().to_owned();
    let detached = first.detach(left).await.expect("one is left");
    assert!(detached.holds().eq([&path]));
    assert_directory_empty(&client, "/left/written").await;
    let second = next(&server, LONG, &detached).await;
    assert_eq!(locked(&second).await.node_path(), path);
}

async fn session_can_be_left_more_than_once(server: TestServer) {
    let mut session = session(&server, LONG).await;
    let mut hold = locked(&session).await;
    let mut token = hold.fencing_token();
    for turn in 1..4 {
        let detached = session.detach([hold]).await.expect("it is held");
        session = next(&server, LONG, &detached).await;
        hold = locked(&session).await;
        assert!(hold.fencing_token() > token);
        token = hold.fencing_token();
        assert_eq!(token.turn(), turn);
    }
    hold.release().await.expect("it is released");
    let client = administrator(&server).await;
    assert_directory_empty(&client, PATH).await;
}

async fn znode_that_was_deleted_meanwhile_is_no_hold(server: TestServer) {
    let (detached, path) = left(&server, LONG).await;
    let client = administrator(&server).await;
    client.delete(&path, None).await.expect("it exists");
    let second = next(&server, LONG, &detached).await;
    let lock = LOCK.at(&second, PATH, 1);
    let error = lock.acquire().await.expect_err("it was deleted");
    assert!(matches!(error, Error::ContenderDeleted { .. }), "{error}");
    assert_ne!(acquired(&*lock).await.node_path(), path);
}

async fn what_cannot_be_left_is_refused_and_released(server: TestServer) {
    let first = session(&server, LONG).await;
    let other = session(&server, LONG).await;
    let refused = async |holds: Vec<Hold>| {
        let refused = first.clone().detach(holds).await;
        let error = refused.expect_err("it cannot be left");
        assert!(matches!(error, Error::InvalidInput(_)), "{error}");
    };
    refused(Vec::new()).await;
    let single = Kind::new("single", zookeeper_recipes_suite::LOCK_OF_ONE_ZNODE, 1);
    refused(vec![acquired(&*single.on(&first, "left")).await]).await;
    let foreign = locked(&other).await;
    refused(vec![foreign]).await;
    // They are released, and the session continues.
    locked(&first).await.release().await.expect("it is free");
    acquired(&*single.on(&other, "left"))
        .await
        .release()
        .await
        .expect("it is free");
    let hold = locked(&first).await;
    let client = administrator(&server).await;
    client
        .delete(hold.node_path(), None)
        .await
        .expect("it exists");
    eventually("the loss is noticed", async || !hold.is_held()).await;
    let error = first.detach([hold]).await.expect_err("it is lost");
    assert!(matches!(error, Error::Lost { .. }), "{error}");
}

async fn session_is_left_where_the_root_refuses_the_ticket(server: TestServer) {
    let first = session(&server, LONG).await;
    let hold = locked(&first).await;
    let path = hold.node_path().to_owned();
    let client = administrator(&server).await;
    let nothing = [Acl::new(Permission::READ, AuthId::anyone())];
    let set = client.set_acl("/", &nothing, None).await;
    set.expect("anyone may");
    let detached = first.detach([hold]).await.expect("it is held");
    let second = next(&server, LONG, &detached).await;
    let hold = locked(&second).await;
    assert_eq!(hold.node_path(), path);
    hold.release().await.expect("it is released");
    eventually("the ticket is deleted", async || {
        children(&client, "/left").await == ["lock"]
    })
    .await;
}
