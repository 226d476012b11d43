//! Sessions live, expire and end as a server and its client have it.

use crate::support::{connect, create, everyone, is_unknown, make, milliseconds, seconds, servers};
use futures_util::{FutureExt, StreamExt};
use zookeeper_recipes_core::ServerError;
use zookeeper_recipes_core::ensemble::{
    ConnectionState, CreateMode, EventType, SessionEnd, WatchEvent,
};
use zookeeper_recipes_simulation::{Change, Fault, FaultKind, RequestKind};

#[tokio::test(start_paused = true)]
async fn live_on_while_nobody_asks_anything() {
    let simulation = servers(1, 1);
    let session = connect(&simulation, "a").await;
    create(&session, "/e", CreateMode::Ephemeral).await;
    tokio::time::sleep(seconds(600)).await;
    assert!(session.connection().is_some());
    assert_eq!(session.list("/").await.unwrap(), ["e", "zookeeper"]);
    assert!(simulation.counters().requests(RequestKind::Ping) > 300);
}

#[tokio::test(start_paused = true)]
async fn are_closed_with_their_last_reference() {
    let simulation = servers(2, 1);
    let session = connect(&simulation, "a").await;
    let watcher = connect(&simulation, "b").await;
    create(&session, "/e", CreateMode::Ephemeral).await;
    create(&session, "/f", CreateMode::Ephemeral).await;
    let (_, _, gone) = watcher.get_and_watch("/e").await.unwrap();
    let (_, own) = session.exists_and_watch("/none").await.unwrap();
    let states = session.states();
    let start = simulation.now();
    drop(session);
    assert_eq!(gone.await, WatchEvent::Fired(EventType::NodeDeleted));
    assert!(simulation.now() - start < seconds(1));
    assert_eq!(own.await, WatchEvent::Unwatched);
    let states: Vec<ConnectionState> = states.collect().await;
    assert_eq!(
        states.last(),
        Some(&ConnectionState::Ended(SessionEnd::Closed))
    );
    let history = simulation.history();
    let deletions: Vec<_> = history
        .iter()
        .filter(|committed| matches!(committed.change, Change::Deleted { .. }))
        .collect();
    assert_eq!(deletions.len(), 2);
    assert_eq!(deletions[0].zxid, deletions[1].zxid, "in one transaction");
    assert_eq!(simulation.counters().watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_a_sleeping_process_expire_and_learn_it_on_waking() {
    for seed in 0..20 {
        let simulation = servers(seed, 1);
        let process = simulation.process("a");
        let session = connect(&simulation, "a").await;
        let other = connect(&simulation, "b").await;
        create(&session, "/e", CreateMode::Ephemeral).await;
        let (_, _, gone) = other.get_and_watch("/e").await.unwrap();
        let start = simulation.now();
        process.sleep(seconds(12));
        assert_eq!(gone.await, WatchEvent::Fired(EventType::NodeDeleted));
        let expired = simulation.now() - start;
        assert!(
            expired >= seconds(4) && expired <= seconds(9),
            "{expired:?}"
        );
        assert!(session.connection().is_some(), "it has seen nothing yet");
        let seen = process
            .while_awake(async { simulation.now() - start })
            .await;
        assert!(seen >= seconds(12));
        let asked = session.list("/").await;
        assert!(matches!(
            asked,
            Err(ServerError::SessionOver(_) | ServerError::OutcomeUnknown(_))
        ));
        let mut states = session.states();
        while let Some(state) = states.next().await {
            assert_ne!(state, ConnectionState::Ended(SessionEnd::Closed));
        }
        assert_eq!(session.state(), ConnectionState::Ended(SessionEnd::Expired));
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_process_that_is_woken_go_on() {
    let simulation = servers(8, 1);
    let process = simulation.process("a");
    let session = connect(&simulation, "a").await;
    process.sleep(seconds(3600));
    let asked = session.list("/");
    tokio::time::sleep(seconds(2)).await;
    process.wake();
    assert!(asked.await.is_ok());
    assert!(simulation.now() < seconds(3));
    process.wake();
    assert!(session.connection().is_some());
}

#[tokio::test(start_paused = true)]
async fn of_a_killed_process_are_left_to_their_timeout() {
    let simulation = servers(9, 1);
    let process = simulation.process("a");
    let session = connect(&simulation, "a").await;
    create(&session, "/e", CreateMode::Ephemeral).await;
    let (_, _, unheard) = session.get_and_watch("/e").await.unwrap();
    let other = connect(&simulation, "b").await;
    let (_, _, gone) = other.get_and_watch("/e").await.unwrap();
    let killed = simulation.now();
    process.kill();
    process.wake();
    let dead = tokio::spawn({
        let process = process.clone();
        async move { process.while_awake(async {}).await }
    });
    assert_eq!(gone.await, WatchEvent::Fired(EventType::NodeDeleted));
    let after = simulation.now() - killed;
    assert!(after >= seconds(4) && after <= seconds(9), "{after:?}");
    assert!(unheard.now_or_never().is_none());
    assert!(!dead.is_finished());
    let again = connect(&simulation, "a").await;
    create(&again, "/e", CreateMode::Ephemeral).await;
}

#[tokio::test(start_paused = true)]
async fn are_not_applied_for_on_a_connection_they_have_left() {
    let mut moved = 0;
    for seed in 0..200 {
        let simulation = servers(seed, 3);
        let session = connect(&simulation, "a").await;
        make(&simulation, "/d");
        session.sync("/d").await.unwrap();
        let late = Fault::new(FaultKind::RequestLate(milliseconds(40)));
        simulation.faults().inject(late.on(RequestKind::Create));
        let acl = everyone();
        let created = session.create("/d/n", b"", CreateMode::Ephemeral, &acl);
        simulation.faults().disconnect(session.id);
        assert!(is_unknown(&created.await));
        session.sync("/d").await.unwrap();
        let names = session.list("/d").await.unwrap();
        let at = simulation.now();
        tokio::time::sleep(seconds(1)).await;
        let later = session.list("/d").await.unwrap();
        assert_eq!(
            names,
            later,
            "seed {seed}: applied after {at:?}\n{}",
            simulation.trace()
        );
        moved += u32::from(simulation.trace().to_string().contains("SessionMoved"));
    }
    assert!(moved > 0, "the case that this is about has come up");
}

#[tokio::test(start_paused = true)]
async fn opened_for_nobody_end_by_their_timeout() {
    let simulation = servers(7, 1);
    let process = simulation.process("a");
    let mut opening = Box::pin(process.connect());
    assert!((&mut opening).now_or_never().is_none());
    while simulation.administrator().sessions().is_empty() {
        tokio::time::sleep(milliseconds(1)).await;
    }
    drop(opening);
    tokio::time::sleep(seconds(10)).await;
    assert!(simulation.administrator().sessions().is_empty());
}
