//! A process far away from the servers.

use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::ensemble::CreateMode;

use crate::support::{connect, create, milliseconds, seconds, servers};

#[tokio::test(start_paused = true)]
async fn each_request_of_a_process_far_away_takes_a_round_trip_more() {
    let simulation = servers(1, 3);
    let (far, near) = (
        simulation.process("far"),
        connect(&simulation, "near").await,
    );
    let way = milliseconds(200);
    far.lengthen_path(way, seconds(60));

    let began = Instant::now();
    let session = connect(&simulation, "far").await;
    // One round trip opens the connection, and one the session.
    assert!(began.elapsed() >= way * 4, "{:?}", began.elapsed());
    let began = Instant::now();
    session.list("/").await.unwrap();
    assert!((way * 2..way * 3).contains(&began.elapsed()));
    let began = Instant::now();
    near.list("/").await.unwrap();
    assert!(began.elapsed() < way);

    let (_, changed) = session.list_and_watch("/").await.unwrap();
    let began = Instant::now();
    create(&near, "/a", CreateMode::Persistent).await;
    changed.await;
    assert!((way..way * 2).contains(&began.elapsed()));

    sleep(seconds(60)).await;
    let began = Instant::now();
    session.list("/").await.unwrap();
    assert!(began.elapsed() < way, "the path is short again");
}

#[tokio::test(start_paused = true)]
async fn order_of_messages_outlives_the_end_of_a_long_path() {
    let simulation = servers(2, 3);
    let session = connect(&simulation, "far").await;
    let far = simulation.process("far");
    far.lengthen_path(milliseconds(500), seconds(60));
    let first = session.list("/");
    far.lengthen_path(milliseconds(0), seconds(0));
    let second = session.sync("/");
    let (first, second) = tokio::join!(first, second);
    first.unwrap();
    second.unwrap();
}
