//! Servers that speak ZooKeeper's protocol and are not Apache's.
//!
//! Some answer a reconnect with a new session, and some close the connection at a request that they
//! do not know. A proxy makes a real server do the same.

use std::time::Duration;

use zookeeper_recipes_core::{Error, HoldState, WaitStrategy};
use zookeeper_recipes_suite::{
    KINDS, LATE, LONG, SHORT, TestServer, eventually, in_time, on_both_servers, proxy, session,
};
use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};

use crate::support::{
    acquire, awaited, held, queue_length, waits_in_earnest, works_with_each_kind,
};

on_both_servers!(apache at night:
    server_that_closes_at_a_removed_watch_costs_a_connection_and_no_hold,
    server_that_closes_at_watches_set_again_costs_connections_and_no_hold,
    server_that_closes_at_removed_watches_and_forgets_sessions_costs_few_of_them,
);

const REMOVE_WATCHES: i32 = 18;
const SET_WATCHES: [i32; 2] = [101, 105];

/// The connections that a client may make because of a request that closes each of them. A client
/// that makes the request again and again makes hundreds.
const CONNECTIONS: u64 = 20;

/// Long enough to wait in earnest.
const A_MOMENT: Duration = Duration::from_millis(200);

/// A server that closes the connection at requests with these operation codes.
async fn proxy_closing_at(server: &TestServer, codes: &[i32]) -> Proxy {
    let proxy = proxy(server).await;
    for code in codes {
        proxy.fault(Fault::on_code(*code).repeatedly().request_lost());
    }
    proxy
}

/// A server that answers each reconnect with a new session.
async fn proxy_forgetting_sessions(server: &TestServer) -> Proxy {
    let proxy = proxy(server).await;
    let each = Fault::on(Operation::Connect).repeatedly();
    proxy.fault(each.session_forgotten());
    proxy
}

async fn server_that_closes_at_a_removed_watch_costs_a_connection_and_no_hold(server: TestServer) {
    let rival = session(&server, LONG).await;
    for &kind in KINDS {
        let proxy = proxy_closing_at(&server, &[REMOVE_WATCHES]).await;
        let session = session(&proxy, SHORT).await;
        let hold = held(kind.on(&session, "held")).await;
        let (first, waiter) = awaited(kind, &rival, &session, "dropped").await;
        waits_in_earnest(kind, &server, (&session, &proxy), first.node_path()).await;
        waiter.abort();
        queue_length(kind, &*kind.rival_on(&rival, "dropped"), 1).await;
        eventually("the hold lasts", || async {
            assert!(hold.is_held(), "{kind:?}: {:?}", hold.state());
            let again = kind.on(&session, "again").acquire().await;
            let again = again.expect("the session lives");
            again.release().await.expect("it is released");
            hold.state() == HoldState::Held
        })
        .await;
        assert_eq!(session.id(), Some(hold.session_id()), "{kind:?}");
        hold.release().await.expect("it is released");
        first.release().await.expect("it is released");
        let connections = proxy.counters().connections();
        assert!(connections < 5, "{kind:?}: {connections} connections");
        let removed = proxy.counters().of(Operation::RemoveWatches).requests;
        let watches = !matches!(kind.strategy(), WaitStrategy::Poll(_));
        assert_eq!(removed > 0, watches, "{kind:?}: {removed} removed");
    }
}

async fn server_that_closes_at_watches_set_again_costs_connections_and_no_hold(server: TestServer) {
    let proxy = proxy_closing_at(&server, &SET_WATCHES).await;
    let victim = session(&proxy, LONG).await;
    let rival = session(&server, LONG).await;
    let first = held(KINDS[0].on(&rival, "awaited")).await;
    let waiter = acquire(KINDS[0].on(&victim, "awaited"));
    waits_in_earnest(KINDS[0], &server, (&victim, &proxy), first.node_path()).await;
    let held = held(KINDS[0].on(&victim, "held")).await;
    let id = victim.id();
    proxy.cut();
    eventually("the watches were set again", || async {
        proxy.counters().of(Operation::SetWatches).requests > 2
    })
    .await;
    first.release().await.expect("it is released");
    let turn = in_time("the waiter reads anew", waiter).await;
    let turn = turn.expect("no panic").expect("it is its turn");
    assert!(held.is_held(), "{:?}", held.state());
    assert_eq!(victim.id(), id);
    turn.release().await.expect("it is released");
    held.release().await.expect("it is released");
    let connections = proxy.counters().connections();
    assert!(connections < CONNECTIONS, "{connections} connections");
}

async fn server_that_closes_at_removed_watches_and_forgets_sessions_costs_few_of_them(
    server: TestServer,
) {
    const WAITS: usize = 40;
    let proxy = proxy_forgetting_sessions(&server).await;
    let lost = Fault::on_code(REMOVE_WATCHES).repeatedly().request_lost();
    proxy.fault(lost);
    let victim = session(&proxy, LONG).await;
    let rival = session(&server, LONG).await;
    let first = held(KINDS[0].on(&rival, "awaited")).await;
    for _ in 0..WAITS {
        let waits = KINDS[0].on(&victim, "awaited");
        match waits.acquire_timeout(A_MOMENT).await {
            Err(Error::DeadlineElapsed { .. } | Error::SessionOver { .. }) => {}
            outcome => panic!("{outcome:?}"),
        }
    }
    let removed = proxy.counters().of(Operation::RemoveWatches).requests;
    assert!((1..6).contains(&removed), "{removed} were removed");
    let connections = proxy.counters().connections();
    assert!(connections < CONNECTIONS, "{connections} connections");
    first.release().await.expect("it is released");
    works_with_each_kind(&victim, "awaited", LATE).await;
}
