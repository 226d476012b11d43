//! More to watch in one session than one request can set again.

use futures_util::future::join_all;
use zookeeper_recipes_core::Hold;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_suite::{
    LONG, TestServer, assert_no_watch_left, eventually, in_time, on_both_servers, proxy, session,
};

on_both_servers!(apache at night:
    session_of_thousands_of_single_node_waiters_survives_a_broken_connection,
);

const MANY: usize = 3_500;

/// The waiters watch one znode each, and the paths together are longer than 128 KiB.
async fn session_of_thousands_of_single_node_waiters_survives_a_broken_connection(
    server: TestServer,
) {
    let proxy = proxy(&server).await;
    let others = session(&server, LONG).await;
    let session = session(&proxy, LONG).await;
    let id = session.id();
    let mine = ExclusiveLock::new(&session, "/locks/mine").expect("a good path");
    let mine = mine.acquire().await.expect("it is free");
    let lock = |session, shard: usize| {
        let path = format!("/app/some/longer/path/of/shards/{shard:06}/lock");
        SingleNodeLock::new(session, path).expect("a good path")
    };
    let acquired = (0..MANY).map(async |shard| lock(&others, shard).acquire().await);
    let held = in_time("they hold", join_all(acquired)).await;
    let waiters = Vec::from_iter((0..MANY).map(|shard| {
        let lock = lock(&session, shard);
        tokio::spawn(async move { lock.acquire().await?.release().await })
    }));
    eventually("they watch", async || {
        let monitor = server.monitor().await.expect("an answer");
        monitor.watches as usize >= MANY
    })
    .await;
    for _ in 0..3 {
        let connections = proxy.counters().connections();
        proxy.reset();
        eventually("it is connected again", async || {
            proxy.counters().connections() > connections && mine.is_held()
        })
        .await;
        // The server answers this after the watches that the client sets again.
        let lock = ExclusiveLock::new(&session, "/locks/other").expect("a good path");
        let hold = lock.acquire().await.expect("it is free");
        hold.release().await.expect("it is released");
    }
    assert_eq!(session.id(), id, "one session from beginning to end");
    assert!(!waiters.iter().any(|waiter| waiter.is_finished()));
    let release = |hold: Result<Hold, _>| hold.expect("it is free").release();
    let released = held.into_iter().map(release);
    for released in in_time("all are released", join_all(released)).await {
        released.expect("it is released");
    }
    for waiter in in_time("each gets its turn", join_all(waiters)).await {
        waiter.expect("no panic").expect("its turn");
    }
    mine.release().await.expect("it is released");
    assert_no_watch_left(&server).await;
}
