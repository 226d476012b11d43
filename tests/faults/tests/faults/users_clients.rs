//! Sessions over a client of the user that outlives them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use zookeeper_client::Client;
use zookeeper_recipes_adapter::ClientEnsemble;
use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_suite::{
    Address, KINDS, Kind, LONG, TICK, TestServer, in_time, on_both_servers, session,
};

use crate::support::{acquire, in_own_runtime, queue_length};

on_both_servers!(
    closed_session_of_a_client_that_lives_on_bars_nobody,
    holds_whose_runtime_has_gone_bar_nobody_while_the_client_lives,
);

/// The servers grant half of it: longer than [`SOON`].
const CLIENT: Duration = Duration::from_secs(20);
/// So long that the end of the client's session has deleted nothing.
const SOON: Duration = Duration::from_secs(4);

async fn client(server: &TestServer) -> Client {
    let connector = Client::connector().with_session_timeout(CLIENT);
    connector
        .connect(&server.address())
        .await
        .expect("it connects")
}

async fn session_over(client: Client) -> Session {
    let ensemble = Arc::new(ClientEnsemble::new(client));
    let options = ConnectOptions::new().tick(TICK);
    Session::open(ensemble, options).await.expect("it is open")
}

async fn closed_session_of_a_client_that_lives_on_bars_nobody(server: TestServer) {
    let client = client(&server).await;
    let rival = session(&server, LONG).await;
    let victim = session_over(client.clone()).await;
    let (mut holds, mut waiters, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
    for kind in KINDS {
        holds.push(
            kind.on(&victim, "held")
                .acquire()
                .await
                .expect("it is free"),
        );
        let first = kind.rival_on(&rival, "awaited").acquire().await;
        firsts.push(first.expect("it is free"));
        waiters.push(acquire(kind.on(&victim, "awaited")));
        queue_length(*kind, &*kind.rival_on(&rival, "awaited"), 2).await;
    }
    in_time("the close", victim.close()).await;
    assert!(holds.iter().all(|hold| !hold.is_held()));
    for waiter in waiters {
        assert!(waiter.await.expect("no panic").is_err());
    }
    for first in firsts {
        first.release().await.expect("it is held");
    }
    let next = KINDS
        .iter()
        .flat_map(|kind| ["held", "awaited"].map(|scenario| kind.rival_on(&rival, scenario)));
    for next in join_all(next.map(|next| async move { timeout(SOON, next.acquire()).await })).await
    {
        let next = next.expect("nobody bars it").expect("it holds");
        next.release().await.expect("it is held");
    }
    drop((client, holds));
}

/// The deletions are sent as the runtime goes, and the client sends them in another runtime.
async fn holds_whose_runtime_has_gone_bar_nobody_while_the_client_lives(server: TestServer) {
    let client = client(&server).await;
    let rival = session(&server, LONG).await;
    let queues: Vec<Kind> = KINDS
        .iter()
        .copied()
        .filter(|kind| kind.recipe.queues)
        .collect();
    let (its_client, its_queues) = (client.clone(), queues.clone());
    let holds = in_own_runtime(async move || {
        let victim = session_over(its_client).await;
        let held = its_queues
            .iter()
            .map(async |kind| kind.on(&victim, "held").acquire().await);
        join_all(held).await
    });
    let holds = tokio::task::spawn_blocking(move || holds.join().expect("no panic"));
    for hold in holds.await.expect("no panic") {
        assert!(!hold.expect("it was free").is_held());
    }
    let next = queues.iter().map(async |kind| {
        let next = kind.rival_on(&rival, "held");
        timeout(SOON, next.acquire()).await
    });
    for next in join_all(next).await {
        let next = next.expect("nobody bars it").expect("it holds");
        next.release().await.expect("it is held");
    }
    drop(client);
}
