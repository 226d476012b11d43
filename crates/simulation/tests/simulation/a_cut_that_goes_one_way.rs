//! A cut can go one way only.

use crate::support::{
    GIVEN_UP, TICK, TIMEOUT, comes, connect, connect_alone_to, create_ephemeral, everyone,
    milliseconds, servers, when_ended,
};
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::ensemble::CreateMode;
use zookeeper_recipes_simulation::Way;

#[tokio::test(start_paused = true)]
async fn lets_a_process_hear_what_it_cannot_answer() {
    let simulation = servers(1, 1);
    let session = connect(&simulation, "a").await;
    create_ephemeral(&session, "/a").await;
    let watch = session.get_and_watch("/a").await.unwrap().2;
    simulation.process("a").partition_one_way(Way::Up, TICK);
    let began = Instant::now();
    simulation.administrator().delete("/a").unwrap();
    watch.await;
    assert!(began.elapsed() < milliseconds(10));
    let _ = session.list("/").await;
    assert!(began.elapsed() >= TICK);
}

#[tokio::test(start_paused = true)]
async fn lets_a_process_write_what_it_hears_no_answer_to() {
    let simulation = servers(2, 1);
    let session = connect(&simulation, "a").await;
    simulation.process("a").partition_one_way(Way::Down, TICK);
    let began = Instant::now();
    let created = session.create("/a", b"", CreateMode::Ephemeral, everyone());
    sleep(milliseconds(20)).await;
    assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
    created.await.unwrap();
    assert!(began.elapsed() >= TICK);
}

#[tokio::test(start_paused = true)]
async fn lets_a_follower_hear_its_leader_and_keep_no_session() {
    let simulation = servers(3, 3);
    let session = connect_alone_to(&simulation, "a", 1).await;
    let beside = connect_alone_to(&simulation, "a", 1).await;
    let other = connect_alone_to(&simulation, "b", 2).await;
    let faults = simulation.faults();
    faults.cut_off_one_way(1, Way::Up, GIVEN_UP * 3);
    create_ephemeral(&other, "/b").await;
    sleep(milliseconds(20)).await;
    assert_eq!(session.list("/").await.unwrap(), ["b", "zookeeper"]);
    assert!(!comes(milliseconds(100), beside.sync("/")).await);
    sleep(TIMEOUT + TICK).await;
    assert!(when_ended(&simulation, &session).is_some());
}

#[tokio::test(start_paused = true)]
async fn lets_a_follower_send_its_leader_what_it_hears_no_answer_to() {
    let simulation = servers(4, 3);
    let session = connect_alone_to(&simulation, "a", 1).await;
    let beside = connect_alone_to(&simulation, "a", 1).await;
    let faults = simulation.faults();
    faults.cut_off_one_way(1, Way::Down, GIVEN_UP * 3);
    let created = session.create("/a", b"", CreateMode::Ephemeral, everyone());
    sleep(milliseconds(20)).await;
    assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
    assert!(!comes(milliseconds(100), created).await);
    assert_eq!(beside.list("/").await.unwrap(), ["zookeeper"]);
}
