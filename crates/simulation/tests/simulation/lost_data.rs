//! Servers that come back without their data, or with an older state.

use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_core::SessionEnd;
use zookeeper_recipes_core::ensemble::{ConnectionState, CreateMode, ServerSession};
use zookeeper_recipes_simulation::{Change, Simulation};

use crate::support::{
    TICK, TIMEOUT, connect, connect_alone_to, create, milliseconds, seconds, servers,
};

const SOON: Duration = Duration::from_millis(100);

async fn reaches(session: &ServerSession, is_state: fn(ConnectionState) -> bool) {
    let mut within = TIMEOUT;
    while !is_state(session.state()) {
        sleep(milliseconds(10)).await;
        within = within.saturating_sub(milliseconds(10));
        assert!(!within.is_zero(), "{:?}", session.state());
    }
}

fn is_connected(state: ConnectionState) -> bool {
    matches!(state, ConnectionState::Connected { .. })
}

fn is_disconnected(state: ConnectionState) -> bool {
    matches!(state, ConnectionState::Disconnected { .. })
}

fn has_expired(state: ConnectionState) -> bool {
    state == ConnectionState::Ended(SessionEnd::Expired)
}

/// Commits so many transactions.
fn write(simulation: &Simulation, number: usize) {
    for _ in 0..number {
        let administrator = simulation.administrator();
        administrator
            .create("/n-", b"", CreateMode::PersistentSequential)
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn client_that_has_seen_more_is_refused_until_a_single_server_has_caught_up() {
    let simulation = servers(1, 1);
    let session = connect(&simulation, "a").await;
    for number in 0..5 {
        create(&session, &format!("/a{number}"), CreateMode::Ephemeral).await;
    }
    simulation.faults().lose_data(SOON);
    assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
    assert!(simulation.administrator().sessions().is_empty());
    sleep(seconds(2)).await;
    let trace = simulation.trace().to_string();
    assert!(
        trace.contains("behind what the session has seen"),
        "{trace}"
    );
    let state = session.state();
    assert!(matches!(state, ConnectionState::Disconnected { .. }));

    write(&simulation, 5);
    sleep(seconds(1)).await;
    let state = session.state();
    assert!(matches!(state, ConnectionState::Disconnected { .. }));
    write(&simulation, 1);
    reaches(&session, has_expired).await;
}

#[tokio::test(start_paused = true)]
async fn session_of_a_backup_continues_with_its_znodes_of_then() {
    for seed in 0..5 {
        let simulation = servers(seed, 3);
        let session = connect(&simulation, "a").await;
        create(&session, "/kept", CreateMode::Ephemeral).await;
        create(&session, "/deleted", CreateMode::Ephemeral).await;
        let backup = simulation.faults().back_up();
        session.delete("/deleted").await.unwrap();
        create(&session, "/created", CreateMode::Ephemeral).await;
        let later = connect(&simulation, "b").await;
        later.sync("/").await.unwrap();

        simulation.faults().restore(&backup, SOON);
        sleep(seconds(1)).await;
        for session in [&session, &later] {
            let state = session.state();
            assert!(matches!(state, ConnectionState::Disconnected { .. }));
        }
        // The epoch is a later one.
        write(&simulation, 1);
        reaches(&session, is_connected).await;
        reaches(&later, has_expired).await;
        let list = session.list("/").await.unwrap();
        assert_eq!(list, ["deleted", "kept", "n-0000000002", "zookeeper"]);
        let ours = simulation.administrator().sessions();
        assert_eq!(ours, [session.id]);
    }
}

#[tokio::test(start_paused = true)]
async fn session_that_has_seen_nothing_since_the_backup_loses_nothing() {
    for servers in [servers(3, 1), servers(3, 3)] {
        let session = connect(&servers, "a").await;
        create(&session, "/a", CreateMode::Ephemeral).await;
        let backup = servers.faults().back_up();
        write(&servers, 3);
        servers.faults().restore(&backup, SOON);
        reaches(&session, is_disconnected).await;
        reaches(&session, is_connected).await;
        assert_eq!(session.list("/").await.unwrap(), ["a", "zookeeper"]);
        write(&servers, 1);
        let children = servers.administrator().children("/");
        assert_eq!(
            children,
            ["a", "n-0000000001", "zookeeper"],
            "it counts anew"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn session_of_a_backup_whose_client_is_gone_expires() {
    let simulation = servers(4, 1);
    let session = connect(&simulation, "a").await;
    create(&session, "/a", CreateMode::Ephemeral).await;
    let backup = simulation.faults().back_up();
    drop(session.close());
    sleep(seconds(60)).await;
    simulation.faults().restore(&backup, SOON);
    sleep(TIMEOUT / 2).await;
    assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
    sleep(TIMEOUT / 2 + TICK * 2).await;
    assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
    assert!(simulation.administrator().sessions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_committed_is_in_no_backup() {
    let simulation = servers(5, 3);
    let session = connect(&simulation, "a").await;
    simulation.faults().stall_commits(seconds(2));
    let opening = simulation.process("b");
    let opening = tokio::spawn(async move { opening.connect().await });
    let creating = session.create("/a", b"", CreateMode::Ephemeral, &[]);
    drop(creating);
    sleep(milliseconds(100)).await;
    assert_eq!(simulation.administrator().sessions().len(), 2);
    let backup = simulation.faults().back_up();
    simulation.faults().restore(&backup, SOON);
    assert_eq!(simulation.administrator().sessions(), [session.id]);
    opening.abort();
}

#[tokio::test(start_paused = true)]
async fn member_that_is_stopped_meanwhile_takes_the_data_over() {
    let simulation = servers(6, 3);
    let faults = simulation.faults();
    write(&simulation, 3);
    faults.stop_member(2);
    faults.lose_data(SOON);
    sleep(seconds(1)).await;
    write(&simulation, 1);
    faults.start_member(2);
    sleep(seconds(1)).await;
    let session = connect_alone_to(&simulation, "a", 2).await;
    let list = session.list("/").await.unwrap();
    assert_eq!(list, ["n-0000000000", "zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn history_begins_anew_with_what_the_backup_has() {
    let simulation = servers(7, 1);
    let session = connect(&simulation, "a").await;
    create(&session, "/a", CreateMode::Ephemeral).await;
    let administrator = simulation.administrator();
    administrator.set_data("/a", b"data").expect("it is there");
    let backup = simulation.faults().back_up();
    let before = simulation.history();
    write(&simulation, 1);
    let length = simulation.history().len();
    simulation.faults().restore(&backup, SOON);
    sleep(SOON * 2).await;
    let history = simulation.history();
    let Some(Change::DataReplaced { data }) = history.last().map(|it| &it.change) else {
        panic!("{history:?}");
    };
    let [opened, created, written] = &data[..] else {
        panic!("{data:?}");
    };
    assert_eq!(opened.change, before[0].change);
    assert_eq!(created.zxid, before[1].zxid);
    assert!(matches!(&created.change, Change::Created { data, .. } if data == b"data"));
    assert_eq!(
        (written.zxid, &written.change),
        (before[2].zxid, &before[2].change)
    );
    write(&simulation, 1);
    let repeated = simulation.history().last().map(|it| it.zxid);
    assert_eq!(repeated, Some(history[length - 1].zxid));
}
