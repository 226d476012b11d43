//! Locks over TLS.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use zookeeper_recipes_core::{CreateMode, NodePath, Refusal, Session};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer};
use zookeeper_recipes_suite::tls::{Authority, Files, Front, trusting};
use zookeeper_recipes_suite::{eventually, in_time};

use crate::{connect, options};

/// Two sessions hold one after the other.
async fn hand_off(first: &Session, second: &Session) {
    let lock = |session| ExclusiveLock::new(session, "/locks/a").expect("a good path");
    let (first, second) = (lock(first), lock(second));
    let hold = in_time("the first", first.acquire()).await.expect("free");
    let waiting = tokio::spawn(async move { second.acquire().await });
    eventually("the second waits", async || {
        first.contenders().await.is_ok_and(|queue| queue.len() == 2)
    })
    .await;
    hold.release().await.expect("it is released");
    let hold = in_time("the second", waiting).await.expect("no panic");
    let hold = hold.expect("its turn");
    hold.release().await.expect("it is released");
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_passes_from_one_session_to_the_next_over_tls() {
    let server = EmbeddedServer::start().expect("it starts");
    let authority = Authority::new("root");
    for (name, piece) in [
        ("localhost", usize::MAX),
        ("localhost", 1),
        ("localhost", 7),
        ("127.0.0.1", usize::MAX),
    ] {
        let shown = authority.issue(&[name]).server(None);
        let front = Front::with(server.port(), shown, piece).await;
        let address = front.at(name);
        for address in [format!("tcp+tls://{address}"), address] {
            let first = connect(&address, options(trusting(&authority))).await;
            let second = connect(&address, options(trusting(&authority))).await;
            hand_off(&first, &second).await;
            first.close().await;
            second.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_replaced_while_a_hold_lasts() {
    let server = EmbeddedServer::start().expect("it starts");
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let shown = authority.issue(&["localhost"]).server(Some(&clients));
    let front = Front::new(server.port(), shown).await;
    let old = clients.issue(&["service"]);
    let files = Files::new(&authority, &old);
    let address = front.at("localhost");
    // This is long enough for a slow machine to connect twice within the lease.
    let options = options(files.options()).session_timeout(Duration::from_secs(30));
    let session = connect(&address, options).await;
    let lock = ExclusiveLock::new(&session, "/locks/a").expect("a good path");
    let hold = in_time("the lock", lock.acquire()).await.expect("free");
    let id = session.id();

    // Everything is replaced: both authorities, and both certificates.
    let (authority, clients) = (Authority::new("new root"), Authority::new("new clients"));
    let own = clients.issue(&["service"]);
    // Half of the replacement: the key does not fit, and no connection is opened with it.
    files.write("cert.pem", &own.certificate);
    front.replace(authority.issue(&["localhost"]).server(Some(&clients)));
    front.cut();
    eventually("the cut is noticed", async || !session.is_connected()).await;
    files.replace(&authority, &own);
    eventually("the session is back", async || session.is_connected()).await;

    assert!(hold.is_held());
    assert_eq!(session.id(), id);
    assert_eq!(front.clients(), [Some(old.der()), Some(own.der())]);
    hold.release().await.expect("it is released");
}

/// The bytes that a stream of TLS keeps when the socket is full go out once it is not.
#[tokio::test(flavor = "multi_thread")]
async fn requests_continue_when_a_server_reads_again() {
    // Its pings are too rare to push anything.
    let timeout = Duration::from_secs(180);
    let mut limits = EmbeddedOptions::default();
    limits.simulation.max_session_timeout = Some(timeout);
    let server = EmbeddedServer::start_with(limits).expect("it starts");
    let authority = Authority::new("root");
    let shown = authority.issue(&["localhost"]).server(None);
    let front = Front::new(server.port(), shown).await;
    let options = options(trusting(&authority)).session_timeout(timeout);
    let session = connect(&front.at("localhost"), options).await;
    let path = NodePath::new("/any").expect("a good path");
    let server = session.server(&path).await.expect("a session");
    let data = vec![7; 500 << 10];
    for round in 0..5 {
        front.set_deaf(true);
        let mut writes = JoinSet::new();
        for number in 0..20 {
            let (server, data) = (server.clone(), data.clone());
            writes.spawn(async move {
                let path = format!("/z{round}-{number}");
                let acl = [zookeeper_recipes_core::Acl::new(
                    zookeeper_recipes_core::Permission::ALL,
                    zookeeper_recipes_core::AuthId::anyone(),
                )];
                let mode = CreateMode::Ephemeral;
                let created = server.create(&path, &data, mode, &acl).await;
                created
                    .map(drop)
                    .or_else(|error| match error.is(Refusal::NodeExists) {
                        true => Ok(()),
                        false => Err(error),
                    })
            });
        }
        // The system does not report whether the socket is full. 10 MB fill it in far less time.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let began = Instant::now();
        front.set_deaf(false);
        while let Some(written) = in_time("an answer", writes.join_next()).await {
            written.expect("no panic").expect("it is created");
        }
        let took = began.elapsed();
        // Half of the interval of its pings.
        assert!(took < timeout / 6, "{took:?}");
    }
}
