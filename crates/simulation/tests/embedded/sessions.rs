//! Sessions over TCP move between members.

use std::time::Duration;

use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_protocol::CreateMode;
use zookeeper_recipes_simulation::EmbeddedServer;

use crate::raw::{Raw, create};
use crate::resume;

#[tokio::test]
async fn session_outlives_the_fall_of_its_leader() {
    let ensemble = EmbeddedServer::start_ensemble().expect("it starts");
    let options = ConnectOptions::new().session_timeout(Duration::from_secs(10));
    let session = Session::connect_with(&ensemble.connect_string(), options)
        .await
        .unwrap();
    let lock = ExclusiveLock::new(&session, "/lock").unwrap();
    let hold = lock.acquire().await.unwrap();
    ensemble.faults().elect(1, Duration::from_millis(50));
    session.wait_connected().await.unwrap();
    assert!(hold.is_held());
    hold.release().await.unwrap();
    assert_eq!(ensemble.administrator().leader(), 1);
}

#[test]
fn session_goes_on_with_its_password_and_with_no_other() {
    let ensemble = EmbeddedServer::start_ensemble().expect("it starts");
    let first = Raw::connect(&ensemble.member(0));
    let id = first.connected.session_id;
    let wrong = Raw::resume(&ensemble.member(1), id, vec![1; 16]);
    assert_eq!(wrong.connected.session_id, 0);
    assert_eq!(wrong.connected.timeout, 0);
    let right = resume(&ensemble.member(2), &first);
    assert_eq!(right.connected.session_id, id);
}

#[test]
fn session_that_has_moved_is_no_longer_served_by_the_first_member() {
    let ensemble = EmbeddedServer::start_ensemble().expect("it starts");
    let mut first = Raw::connect(&ensemble.member(1));
    let mut moved = resume(&ensemble.member(2), &first);
    moved.done(create("/moved", CreateMode::Ephemeral));
    first.send(create("/late", CreateMode::Ephemeral));
    assert!(first.is_closed());
    assert_eq!(
        ensemble.administrator().children("/"),
        ["moved", "zookeeper"]
    );
}
