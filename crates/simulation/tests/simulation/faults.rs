//! Faults happen to the requests that they are meant for.

use crate::support::{connect, create, everyone, is_unknown, seconds, servers};
use futures_util::FutureExt;
use zookeeper_recipes_core::ServerError;
use zookeeper_recipes_core::ensemble::{ConnectionState, CreateMode, Operation, SessionEnd};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind};

#[tokio::test(start_paused = true)]
async fn lose_a_request_before_it_is_applied() {
    let simulation = servers(1, 1);
    let session = connect(&simulation, "a").await;
    simulation.faults().inject(
        Fault::new(FaultKind::RequestLost)
            .of_process("a")
            .on(RequestKind::Create)
            .nth(2),
    );
    create(&session, "/one", CreateMode::Persistent).await;
    let acl = everyone();
    let two = session.create("/two", b"", CreateMode::Persistent, &acl);
    let three = session.create("/three", b"", CreateMode::Persistent, &acl);
    assert!(is_unknown(&two.await));
    assert!(
        is_unknown(&three.await),
        "what was sent after it is lost with it"
    );
    assert_eq!(session.list("/").await.unwrap(), ["one", "zookeeper"]);
    assert!(session.connection().is_some());
    assert_eq!(simulation.faults().waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn lose_a_reply_after_the_request_was_applied() {
    let simulation = servers(2, 1);
    let session = connect(&simulation, "a").await;
    simulation.faults().inject(
        Fault::new(FaultKind::ReplyLost)
            .on(RequestKind::Transact)
            .under("/two"),
    );
    let operation = |path| Operation::create(path, [], CreateMode::Ephemeral, everyone());
    session.transact(&[operation("/one")]).await.unwrap();
    let failed = session.transact(&[operation("/two")]).await.unwrap_err();
    assert!(matches!(failed.error, ServerError::OutcomeUnknown(_)));
    assert_eq!(
        session.list("/").await.unwrap(),
        ["one", "two", "zookeeper"]
    );
}

#[tokio::test(start_paused = true)]
async fn expire_a_session_as_its_request_arrives() {
    let simulation = servers(4, 1);
    let session = connect(&simulation, "a").await;
    create(&session, "/e", CreateMode::Ephemeral).await;
    simulation
        .faults()
        .inject(Fault::new(FaultKind::SessionExpired).on(RequestKind::Create));
    let refused = session
        .create("/n", b"", CreateMode::Persistent, everyone())
        .await;
    assert!(matches!(
        refused,
        Err(ServerError::SessionOver(SessionEnd::Expired)) | Err(ServerError::OutcomeUnknown(_))
    ));
    let end = session.list("/").await;
    assert!(
        matches!(end, Err(ServerError::SessionOver(SessionEnd::Expired))),
        "{end:?}"
    );
    assert_eq!(session.state(), ConnectionState::Ended(SessionEnd::Expired));
    assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn delay_requests_and_replies_without_changing_their_order() {
    let simulation = servers(5, 1);
    let session = connect(&simulation, "a").await;
    simulation
        .faults()
        .inject(Fault::new(FaultKind::RequestLate(seconds(1))).on(RequestKind::Create));
    let start = simulation.now();
    let acl = everyone();
    let creation = session.create("/n", b"", CreateMode::Persistent, &acl);
    let listing = session.list("/");
    assert_eq!(listing.await.unwrap(), ["n", "zookeeper"]);
    assert!(creation.now_or_never().is_some());
    assert!(simulation.now() - start >= seconds(1));
    simulation
        .faults()
        .inject(Fault::new(FaultKind::ReplyLate(seconds(1))));
    let start = simulation.now();
    session.delete("/n").await.unwrap();
    assert!(simulation.now() - start >= seconds(1));
}
