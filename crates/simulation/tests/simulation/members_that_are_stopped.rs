//! Members that are stopped and started again, and members that lag.

use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::{CreateMode, ServerSession};
use zookeeper_recipes_simulation::Simulation;

use crate::support::{
    TICK, TIMEOUT, comes, connect_alone_to, connect_to, create, milliseconds, seconds, servers,
};

async fn connected_again(session: &ServerSession) {
    while session.connection().is_none() {
        sleep(milliseconds(10)).await;
    }
}

fn names(simulation: &Simulation) -> Vec<String> {
    simulation.administrator().children("/")
}

#[tokio::test(start_paused = true)]
async fn sessions_of_a_stopped_member_go_on_elsewhere() {
    for seed in 0..10 {
        let simulation = servers(seed, 3);
        let session = connect_alone_to(&simulation, "a", 1).await;
        simulation.faults().stop_member(1);
        sleep(milliseconds(20)).await;
        connected_again(&session).await;
        create(&session, "/a", CreateMode::Ephemeral).await;
        let administrator = simulation.administrator();
        assert_ne!(administrator.server_of(session.id), Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn member_that_has_missed_much_catches_up_before_it_serves() {
    for seed in 0..10 {
        let simulation = servers(seed, 3);
        let faults = simulation.faults();
        let session = connect_to(&simulation, "a", 0).await;
        faults.stop_member(2);
        create(&session, "/a", CreateMode::Persistent).await;
        sleep(seconds(1)).await;
        faults.stop_member(1);
        faults.start_member(2);
        sleep(seconds(1)).await;
        let late = connect_alone_to(&simulation, "late", 2).await;
        assert_eq!(late.list("/").await.unwrap(), ["a", "zookeeper"]);
    }
}

#[tokio::test(start_paused = true)]
async fn member_that_has_missed_something_does_not_lead() {
    for seed in 0..10 {
        let simulation = servers(seed, 3);
        let faults = simulation.faults();
        let session = connect_to(&simulation, "a", 0).await;
        faults.stop_member(2);
        create(&session, "/a", CreateMode::Persistent).await;
        faults.stop_member(1);
        faults.stop_member(0);
        faults.start_member(2);
        sleep(TICK).await;
        faults.start_member(1);
        sleep(TICK).await;
        assert_eq!(simulation.administrator().leader(), 1);
        let late = connect_alone_to(&simulation, "late", 2).await;
        assert_eq!(late.list("/").await.unwrap(), ["a", "zookeeper"]);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_served_and_no_session_expires_without_a_quorum() {
    let simulation = servers(3, 3);
    let session = connect_to(&simulation, "a", 0).await;
    create(&session, "/a", CreateMode::Ephemeral).await;
    simulation.faults().stop_member(1);
    simulation.faults().stop_member(2);
    sleep(milliseconds(20)).await;
    assert!(!comes(TIMEOUT, simulation.process("b").connect()).await);
    simulation.faults().start_member(1);
    sleep(milliseconds(20)).await;
    assert_eq!(names(&simulation), ["a", "zookeeper"]);
    assert_eq!(simulation.administrator().sessions(), [session.id]);
}

#[tokio::test(start_paused = true)]
async fn follower_lags_until_a_sync_and_no_longer_once_the_lag_is_zero() {
    let simulation = servers(4, 3);
    let administrator = simulation.administrator();
    let reader = connect_to(&simulation, "reader", 1).await;
    let prompt = connect_to(&simulation, "prompt", 2).await;
    simulation.faults().lag(1, seconds(1));
    let new = |path: &str| administrator.create(path, b"", CreateMode::Persistent);
    new("/n").unwrap();
    sleep(milliseconds(100)).await;
    assert_eq!(reader.list("/").await.unwrap(), ["zookeeper"]);
    assert_eq!(prompt.list("/").await.unwrap(), ["n", "zookeeper"]);
    reader.sync("/").await.unwrap();
    assert_eq!(reader.list("/").await.unwrap(), ["n", "zookeeper"]);
    simulation.faults().lag(1, seconds(0));
    sleep(seconds(1)).await;
    new("/m").unwrap();
    sleep(milliseconds(100)).await;
    assert_eq!(reader.list("/").await.unwrap(), ["m", "n", "zookeeper"]);
}
