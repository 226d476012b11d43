//! Sessions on real servers: their states, their end, and what outlives them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use zookeeper_recipes_adapter::ClientEnsemble;
use zookeeper_recipes_core::{
    AfterSessionLoss, ConnectOptions, CreateMode, Error, HoldState, LossReason, Queue,
    QueueOptions, Session, SessionEnd, SessionState,
};
use zookeeper_recipes_suite::{LONG, PATIENCE, eventually, in_time, server, session};
use zookeeper_recipes_testkit::Server;

use crate::support::First;

async fn no_connection_left(server: &Server) {
    // The connection that asks is one.
    eventually("the connections are closed", async || {
        let monitor = server.monitor().await.expect("the server answers");
        monitor.connections <= 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_expires_is_followed_by_a_new_one() {
    let server = server().await;
    let session = session(&server, LONG).await;
    let first = session.id().expect("it is open");
    let mut states = session.states();
    assert_eq!(states.next().await, Some(SessionState::Connected(first)));
    server
        .expire_session(first.0)
        .await
        .expect("a session can be expired");
    let second = async {
        loop {
            match states.next().await.expect("another state") {
                SessionState::Connected(id) if id != first => return id,
                SessionState::Ended(end) => panic!("over: {end}"),
                _ => {}
            }
        }
    };
    let second = in_time("a new session opens", second).await;
    assert_eq!(session.id(), Some(second));
    session.close().await;
    while let Some(state) = states.next().await {
        if state == SessionState::Ended(SessionEnd::Closed) {
            assert_eq!(states.next().await, None, "the last one");
            return;
        }
    }
    panic!("the close was not reported");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_notifies_the_server() {
    let server = server().await;
    let session = session(&server, LONG).await;
    let queue = Queue::new(&session, "/closed", First).expect("a good path");
    let hold = queue.acquire().await.expect("nobody is before it");
    tokio::time::timeout(Duration::from_secs(5), session.close())
        .await
        .expect("at once");
    assert_eq!(
        server
            .monitor()
            .await
            .expect("the server answers")
            .ephemerals,
        0
    );
    assert_eq!(
        hold.state(),
        HoldState::Lost(LossReason::Session(SessionEnd::Closed))
    );
    let error = queue.acquire().await.expect_err("there is no session");
    assert!(matches!(error, Error::NoSession { .. }), "{error}");
    no_connection_left(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_last_handle_closes_but_a_hold_is_one() {
    let server = server().await;
    let session = session(&server, LONG).await;
    let queue = Queue::new(&session, "/dropped", First).expect("a good path");
    let hold = queue.acquire().await.expect("nobody is before it");
    drop((session, queue));
    hold.transaction()
        .create("/written", b"", CreateMode::Persistent)
        .commit()
        .await
        .expect("the session is kept open by the hold");
    assert!(hold.is_held());
    drop(hold);
    no_connection_left(&server).await;
    assert_eq!(
        server
            .monitor()
            .await
            .expect("the server answers")
            .ephemerals,
        0
    );
}

/// A session that is over answers each attempt at once. If the attempt asked again and again, the
/// task that opens a new session would never run.
#[tokio::test(flavor = "multi_thread")]
async fn those_who_queue_anew_let_a_new_session_be_opened() {
    let server = server().await;
    let options = ConnectOptions::new().session_timeout(Duration::from_secs(1));
    // Of one thread, so that a single one of them could keep it busy for ever.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let connect_string = server.connect_string();
    let session = runtime
        .spawn(async move { Session::connect_with(&connect_string, options).await })
        .await
        .expect("no panic")
        .expect("a session opens");
    let first = session.id();
    let queue = {
        let options = QueueOptions::new().after_session_loss(AfterSessionLoss::QueueAnew);
        Queue::with_options(&session, "/anew", First, options).expect("a good path")
    };
    let contenders: Vec<_> = (0..10)
        .map(|_| {
            let queue = queue.clone();
            runtime.spawn(async move { queue.acquire().await?.release().await })
        })
        .collect();
    let given_up = async {
        while session.id() == first {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let expired = first.expect("it is open").0;
    server
        .expire_session(expired)
        .await
        .expect("a session can be expired");
    in_time("the session is given up", given_up).await;
    for contender in contenders {
        in_time("it comes through", contender)
            .await
            .expect("no panic")
            .expect("it queues anew");
    }
    runtime.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connected_client_becomes_a_session_for_as_long_as_it_lives() {
    let server = server().await;
    let client = zookeeper_client::Client::connect(&server.connect_string())
        .await
        .expect("a client connects");
    let id = client.session_id().0;
    let session = Session::open(Arc::new(ClientEnsemble::new(client)), ConnectOptions::new())
        .await
        .expect("it is open");
    assert_eq!(session.id().map(|id| id.0), Some(id));
    let queue = Queue::new(&session, "/adopted", First).expect("a good path");
    let hold = queue.acquire().await.expect("nobody is before it");
    server
        .expire_session(id)
        .await
        .expect("a session can be expired");
    in_time("the loss is reported", hold.lost()).await;
    drop(hold);
    let error = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Err(error @ Error::NoSession { .. }) = queue.acquire().await {
                return error;
            }
        }
    })
    .await
    .expect("there will be no other session");
    assert!(error.to_string().contains("expired"), "{error}");
}
