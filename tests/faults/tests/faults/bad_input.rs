//! Input that makes no sense to a server, or to the client.

use std::time::{Duration, Instant};

use tokio::task::JoinError;
use zookeeper_recipes_core::{ConnectOptions, Error, Recipe, Session};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions, SingleNodeLock, SingleNodeOptions};
use zookeeper_recipes_suite::{Address, LONG, SHORT, TestServer, on_both_servers, proxy, session};

on_both_servers!(
    session_timeout_that_the_protocol_cannot_carry_is_refused_at_once,
    longest_session_timeout_that_the_protocol_can_carry_is_cut_to_the_servers,
    hosts_may_stand_apart_from_their_comma,
    longest_data_that_is_not_refused_is_taken_by_the_server,
);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Opens a session in a task of its own, so that a panic is its own.
async fn opened(
    server: &TestServer,
    timeout: Duration,
) -> Result<Result<Session, Error>, JoinError> {
    let connect_string = server.address();
    let options = ConnectOptions::new().session_timeout(timeout);
    tokio::spawn(async move { Session::connect_with(&connect_string, options).await }).await
}

async fn session_timeout_that_the_protocol_cannot_carry_is_refused_at_once(server: TestServer) {
    for timeout in [30 * DAY, Duration::MAX] {
        let began = Instant::now();
        let opened = opened(&server, timeout).await;
        assert!(
            matches!(opened, Ok(Err(Error::InvalidInput(_)))),
            "{timeout:?}: {opened:?}"
        );
        assert!(began.elapsed() < SHORT, "after {:?}", began.elapsed());
    }
}

async fn longest_session_timeout_that_the_protocol_can_carry_is_cut_to_the_servers(
    server: TestServer,
) {
    let longest = Duration::from_millis(i32::MAX.unsigned_abs().into());
    let opened = opened(&server, longest).await.expect("no panic");
    let session = opened.expect("it opens");
    assert_eq!(session.timeout(), Some(Duration::from_secs(60)));
}

async fn hosts_may_stand_apart_from_their_comma(server: TestServer) {
    let at = server.address();
    for hosts in [
        format!("127.0.0.1:1, {at}"),
        format!("{at} ,127.0.0.1:1"),
        format!(" {at} "),
    ] {
        let opened = session(&hosts, LONG).await;
        opened.close().await;
    }
}

async fn longest_data_that_is_not_refused_is_taken_by_the_server(server: TestServer) {
    let proxy = proxy(&server).await;
    let session = session(&proxy, LONG).await;
    let make = |kind: u32, data: usize| {
        let data = vec![b'x'; data];
        let path = format!("/longest/{kind}");
        match kind {
            0 => ExclusiveLock::with_options(&session, path, LockOptions::new().data(data))
                .map(|lock| Box::new(lock) as Box<dyn Recipe>),
            _ => SingleNodeLock::with_options(&session, path, SingleNodeOptions::new().data(data))
                .map(|lock| Box::new(lock) as Box<dyn Recipe>),
        }
    };
    for kind in [0, 1] {
        // Little is wasted of the servers' limit.
        let (mut taken, mut refused) = (0xf_ffff - 1_500, 0xf_ffff);
        while taken + 1 < refused {
            let middle = (taken + refused) / 2;
            match make(kind, middle) {
                Ok(_) => taken = middle,
                Err(_) => refused = middle,
            }
        }
        let longest = make(kind, taken).expect("little is wasted");
        let hold = longest.acquire_timeout(SHORT).await.expect("it is free");
        let entries = longest.contenders().await.expect("an answer");
        assert!(entries[0].data.len() >= taken);
        hold.release().await.expect("it is released");
    }
    assert_eq!(proxy.counters().connections(), 1);
}
