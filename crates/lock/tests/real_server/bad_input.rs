//! Bad input and bad servers: a clear error each, nothing left behind, no hang.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use zookeeper_client::{Acl, Acls, AuthId, CreateMode, Permission};
use zookeeper_recipes_lock::common::{self, Refusal};
use zookeeper_recipes_lock::{
    ConnectOptions, Error, ExclusiveLock, LockOptions, Recipe, Session, SingleNodeLock,
    WaitStrategy,
};
use zookeeper_recipes_suite::{administrator, children, create, server, session};

use crate::support::SESSION_TIMEOUT;

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_cannot_be_a_recipes_is_refused_and_quoted() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    for path in [
        "",
        "/",
        "locks",
        "/locks/",
        "//locks",
        "/a//b",
        "/a/./b",
        "/a/..",
        "/zookeeper",
        "/zookeeper/quota",
        "/a\0b",
        "/a\nb",
        "/a\u{85}",
        "/a\u{1f512}",
    ] {
        let error = ExclusiveLock::new(&session, path).expect_err("no recipe's path");
        assert_eq!(error.value(), path);
        assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
        assert!(SingleNodeLock::new(&session, path).is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_make_no_sense_are_refused() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    for options in [
        LockOptions::new().acl([]),
        LockOptions::new().strategy(WaitStrategy::Poll(Duration::ZERO)),
    ] {
        assert!(ExclusiveLock::with_options(&session, "/locks/a", options).is_err());
    }
    let tick = ConnectOptions::new()
        .session_timeout(Duration::from_secs(4))
        .tick(Duration::from_secs(3));
    let error = Session::connect_with(&server.connect_string(), tick)
        .await
        .err();
    assert!(matches!(error, Some(Error::InvalidInput(_))), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ephemeral_directory_is_refused() {
    let server = server().await;
    let client = administrator(&server).await;
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    client
        .create("/ephemeral", b"", &ephemeral)
        .await
        .expect("it can be created");
    let session = session(&server, SESSION_TIMEOUT).await;
    for path in ["/ephemeral", "/ephemeral/below"] {
        let lock = ExclusiveLock::new(&session, path).expect("a good path");
        let error = lock.acquire().await.expect_err("no place for a queue");
        assert!(
            matches!(
                &error,
                Error::Refused {
                    refusal: Refusal::NoChildrenForEphemerals,
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains("ephemeral"), "{error}");
    }
    assert!(children(&client, "/ephemeral").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_without_permission_is_refused() {
    let server = server().await;
    let client = administrator(&server).await;
    let read_only = [Acl::new(Permission::READ, AuthId::anyone())];
    let options = CreateMode::Persistent.with_acls((&read_only[..]).into());
    client
        .create("/guarded", b"", &options)
        .await
        .expect("it can be created");
    let session = session(&server, SESSION_TIMEOUT).await;
    for lock in [
        Box::new(ExclusiveLock::new(&session, "/guarded").expect("a good path")) as Box<dyn Recipe>,
        Box::new(SingleNodeLock::new(&session, "/guarded/lock").expect("a good path")),
    ] {
        for error in [
            lock.acquire().await.expect_err("not permitted"),
            lock.try_acquire().await.expect_err("not permitted"),
        ] {
            assert!(
                matches!(&error, Error::Refused { refusal: Refusal::NoAuth, path, .. }
                    if path.starts_with("/guarded")),
                "{error}"
            );
        }
    }
    assert!(children(&client, "/guarded").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_chroot_is_named() {
    let server = server().await;
    let client = administrator(&server).await;
    create(&client, "/not").await;
    create(&client, "/not/there").await;
    let session = Session::connect(&format!("{}/not/there", server.connect_string())).await;
    let session = session.expect("a session opens");
    for path in ["/not/there", "/not"] {
        client.delete(path, None).await.expect("it is empty");
    }
    for lock in [
        Box::new(ExclusiveLock::new(&session, "/locks/a").expect("a good path")) as Box<dyn Recipe>,
        Box::new(SingleNodeLock::new(&session, "/lock").expect("a good path")),
    ] {
        let error = lock.acquire().await.expect_err("there is no place for it");
        assert!(matches!(&error, Error::MissingChroot { chroot } if chroot == "/not/there"));
        assert!(error.to_string().contains("/not/there"), "{error}");
    }
    assert!(
        client
            .check_stat("/not")
            .await
            .expect("an answer")
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chroot_is_kept_to() {
    let server = server().await;
    let client = administrator(&server).await;
    create(&client, "/app").await;
    let session = Session::connect(&format!("{}/app", server.connect_string())).await;
    let session = session.expect("a session opens");
    let lock = ExclusiveLock::new(&session, "/locks/a").expect("a good path");
    let hold = lock.acquire().await.expect("nobody is before it");
    assert!(
        hold.node_path().starts_with("/locks/a/"),
        "{}",
        hold.node_path()
    );
    assert_eq!(children(&client, "/app/locks/a").await.len(), 1);
    hold.transaction()
        .create("/made", b"", common::CreateMode::Persistent)
        .commit()
        .await
        .expect("held");
    assert!(
        client
            .check_stat("/app/made")
            .await
            .expect("an answer")
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connect_string_that_is_not_one_is_refused() {
    for connect_string in [
        "",
        "/app",
        "localhost:2181,",
        ",localhost",
        "localhost:2181/app/",
        "localhost:port",
    ] {
        let error = Session::connect(connect_string).await.err();
        assert!(
            matches!(error, Some(Error::InvalidInput(_))),
            "{connect_string:?}: {error:?}"
        );
    }
}

async fn assert_not_connected(address: &str) {
    let timeout = Duration::from_secs(1);
    let started = Instant::now();
    let options = ConnectOptions::new().connection_timeout(timeout);
    let error = Session::connect_with(address, options)
        .await
        .expect_err("nobody is there");
    assert!(
        started.elapsed() < 3 * timeout,
        "within the connection timeout, or nearly"
    );
    assert!(matches!(&error, Error::Connect { .. }), "{error}");
    assert!(
        error.to_string().contains(address),
        "it names the hosts: {error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listening_is_an_error_within_the_connection_timeout() {
    // Bound and let go, so that nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port();
    assert_not_connected(&format!("127.0.0.1:{port}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_speaks_no_zookeeper_is_an_error_within_the_connection_timeout() {
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"\xff\xff\xff\xff",
        b"",
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let stranger = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                stream.write_all(answer).await.expect("it is open");
                if answer.is_empty() {
                    // Says nothing, and stays.
                    std::mem::forget(stream);
                }
            }
        });
        assert_not_connected(&address).await;
        stranger.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_says_so() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = ExclusiveLock::new(&session, "/locks/closed").expect("a good path");
    session.close().await;
    let error = lock.acquire().await.expect_err("there is no session");
    assert!(matches!(error, Error::NoSession { .. }), "{error}");
}
