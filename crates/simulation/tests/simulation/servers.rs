//! Servers follow, lag, lose each other and elect a leader.

use std::sync::Arc;

use crate::support::{
    connect, connect_to, create, everyone, is_unknown, make, milliseconds, seconds, servers,
};
use futures_util::{FutureExt, StreamExt};
use zookeeper_recipes_core::ensemble::{
    ConnectionState, CreateMode, EventType, ServerSession, SessionEnd, WatchEvent,
};
use zookeeper_recipes_simulation::{Fault, FaultKind, Simulation, SimulationOptions};

/// A session at a follower that has not yet applied the create of `/n`.
async fn reader_at_a_server_that_lags() -> (Simulation, Arc<ServerSession>) {
    let lag = milliseconds(500)..=milliseconds(500);
    let simulation = Simulation::new(SimulationOptions {
        servers: 3,
        follower_lag: lag,
        ..Default::default()
    });
    let reader = connect_to(&simulation, "reader", 1).await;
    make(&simulation, "/n");
    (simulation, reader)
}

#[tokio::test(start_paused = true)]
async fn that_follow_let_a_session_continue_before_they_have_applied_all_that_they_were_sent() {
    let (simulation, reader) = reader_at_a_server_that_lags().await;
    let mut states = reader.states();
    let next = states.next().await;
    assert!(matches!(next, Some(ConnectionState::Connected { .. })));
    let cut = Fault::new(FaultKind::RequestLost).reconnecting_to(2);
    simulation.faults().inject(cut);
    assert!(reader.list("/").await.is_err());
    let next = states.next().await;
    assert!(matches!(next, Some(ConnectionState::Disconnected { .. })));
    let next = states.next().await;
    assert!(matches!(next, Some(ConnectionState::Connected { .. })));
    let server = simulation.administrator().server_of(reader.id);
    assert_ne!(server, Some(simulation.administrator().leader()));
    let old = reader.list("/").await.unwrap();
    assert_eq!(old, ["zookeeper"], "an old state");
    reader.sync("/").await.unwrap();
    assert_eq!(reader.list("/").await.unwrap(), ["n", "zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn answer_in_the_order_of_the_calls_whatever_is_asked() {
    for seed in 0..50 {
        let simulation = servers(seed, 3);
        let session = connect(&simulation, "a").await;
        let acl = everyone();
        let mode = CreateMode::PersistentSequential;
        let mut asked = Vec::new();
        for _ in 0..5 {
            asked.push(
                session
                    .create("/n-", b"", mode, &acl)
                    .map(|it| it.is_ok())
                    .boxed(),
            );
            asked.push(session.sync("/").map(|it| it.is_ok()).boxed());
            asked.push(session.delete("/none").map(|it| it.is_err()).boxed());
            asked.push(session.list("/").map(|it| it.is_ok()).boxed());
        }
        let last = asked.pop().unwrap();
        assert!(
            tokio::time::timeout(seconds(1), last).await.unwrap(),
            "seed {seed}"
        );
        for each in asked {
            assert_eq!(each.now_or_never(), Some(true), "seed {seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn never_show_a_session_less_than_it_has_seen() {
    for seed in 0..30 {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            follower_lag: milliseconds(0)..=milliseconds(400),
            ..Default::default()
        });
        let session = connect(&simulation, "a").await;
        let mut seen = 0;
        for round in 0..10 {
            let path = format!("/{round}");
            make(&simulation, &path);
            if round % 3 == 0 {
                simulation.faults().disconnect(session.id);
            }
            if let Ok(names) = session.list("/").await {
                assert!(names.len() >= seen);
                seen = names.len();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cut_off_from_the_leader_answer_reads_but_no_syncs() {
    let simulation = servers(1, 3);
    let session = connect_to(&simulation, "a", 1).await;
    let other = connect_to(&simulation, "b", 0).await;
    create(&session, "/e", CreateMode::Ephemeral).await;
    let (_, _, gone) = other.get_and_watch("/e").await.unwrap();
    simulation.faults().cut_off_from_leader(1, seconds(30));
    let start = simulation.now();
    assert_eq!(gone.await, WatchEvent::Fired(EventType::NodeDeleted));
    let expired = simulation.now() - start;
    assert!(expired < seconds(10), "{expired:?}");
    assert!(session.connection().is_some());
    assert_eq!(
        session.list("/").await.unwrap(),
        ["e", "zookeeper"],
        "an old state"
    );
    let in_time = tokio::time::timeout(seconds(1), session.sync("/")).await;
    assert!(in_time.is_err());
    let mut states = session.states();
    let next = states.next().await;
    assert!(matches!(next, Some(ConnectionState::Connected { .. })));
    let next = states.next().await;
    assert!(
        matches!(next, Some(ConnectionState::Disconnected { .. })),
        "pings hang too"
    );
    assert_eq!(
        states.next().await,
        Some(ConnectionState::Ended(SessionEnd::Expired))
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_quorum_commit_nothing_until_it_is_back() {
    let simulation = servers(2, 3);
    let session = connect_to(&simulation, "a", 0).await;
    simulation.faults().cut_off_from_leader(1, seconds(4));
    simulation.faults().cut_off_from_leader(2, seconds(3));
    let acl = everyone();
    let creation = session.create("/n", b"", CreateMode::Persistent, &acl);
    let start = simulation.now();
    let created = creation.await;
    assert!(simulation.now() - start >= seconds(2));
    if created.is_ok() {
        assert!(simulation.now() - start >= seconds(3));
    }
    simulation.faults().cut_off_from_leader(1, seconds(40));
    simulation.faults().cut_off_from_leader(2, seconds(40));
    tokio::time::sleep(seconds(50)).await;
    let later = connect(&simulation, "b").await;
    later.sync("/").await.unwrap();
    assert_eq!(later.list("/").await.unwrap(), ["n", "zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn cut_off_during_an_election_pass_nothing_on_to_the_new_leader() {
    let simulation = servers(3, 3);
    let session = connect_to(&simulation, "a", 2).await;
    simulation.faults().cut_off_from_leader(1, seconds(12));
    tokio::time::sleep(seconds(5)).await;
    simulation.faults().cut_off_from_leader(2, seconds(9));
    // Server 1 has given its leader up, that one has lost its quorum, and both have elected.
    tokio::time::sleep(milliseconds(8500)).await;
    let start = simulation.now();
    let created = session
        .create("/n", b"", CreateMode::Persistent, everyone())
        .await;
    assert!(is_unknown(&created), "{created:?}");
    assert!(simulation.now() - start < seconds(2), "the server said so");
    session.sync("/").await.unwrap();
    assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
}
