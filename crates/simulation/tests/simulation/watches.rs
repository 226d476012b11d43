//! Watches fire once, in order, and survive a reconnect.

use crate::support::{TIMEOUT, connect, create, milliseconds, one_server, seconds, three_servers};
use futures_util::FutureExt;
use zookeeper_recipes_core::ensemble::{ConnectionState, CreateMode, Event, Operation};
use zookeeper_recipes_simulation::RequestKind;

#[tokio::test(start_paused = true)]
async fn fire_once_each_for_what_they_watch() {
    let simulation = one_server(1);
    let session = connect(&simulation, "a").await;
    let other = connect(&simulation, "b").await;
    create(&*session, "/n", CreateMode::Persistent).await;
    let (stat, absent) = session.exists_and_watch("/later").await.unwrap();
    assert_eq!(stat, None);
    let (_, children) = session.list_and_watch("/n").await.unwrap();
    let (_, _, data) = session.get_and_watch("/n").await.unwrap();
    let (_, _, same) = session.get_and_watch("/n").await.unwrap();
    assert_eq!(simulation.counters().watches(), 3);

    create(&*other, "/later", CreateMode::Persistent).await;
    assert_eq!(absent.await, Event::Created);
    create(&*other, "/n/c", CreateMode::Persistent).await;
    assert_eq!(children.await, Event::ChildrenChanged);
    let set = Operation::SetData {
        path: "/n".into(),
        data: vec![1],
        version: None,
    };
    other.transact(std::slice::from_ref(&set)).await.unwrap();
    assert_eq!(
        (data.await, same.await),
        (Event::DataChanged, Event::DataChanged)
    );
    assert_eq!(simulation.counters().notifications(), 3);
    assert_eq!(simulation.counters().notifications_to("b"), 0);
    other.transact(&[set]).await.unwrap();
    assert_eq!(simulation.counters().notifications(), 3, "one-shot");
    assert_eq!(simulation.counters().watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn on_data_and_children_of_one_znode_are_told_of_its_deletion_by_one_notification() {
    let simulation = one_server(2);
    let session = connect(&simulation, "a").await;
    create(&*session, "/n", CreateMode::Persistent).await;
    let (_, children) = session.list_and_watch("/n").await.unwrap();
    let (_, _, data) = session.get_and_watch("/n").await.unwrap();
    session.delete("/n").await.unwrap();
    assert_eq!(
        (data.await, children.await),
        (Event::Deleted, Event::Deleted)
    );
    assert_eq!(simulation.counters().notifications(), 1);
}

#[tokio::test(start_paused = true)]
async fn are_told_before_a_read_that_sees_the_change() {
    for seed in 0..50 {
        let simulation = three_servers(seed);
        let session = connect(&simulation, "a").await;
        let other = connect(&simulation, "b").await;
        create(&*session, "/n", CreateMode::Persistent).await;
        let (_, _, mut watch) = session.get_and_watch("/n").await.unwrap();
        let deletion = other.delete("/n");
        while session.get("/n").await.is_ok() {
            assert_eq!((&mut watch).now_or_never(), None);
        }
        assert_eq!(watch.now_or_never(), Some(Event::Deleted));
        deletion.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn leave_nothing_behind_when_dropped() {
    let simulation = one_server(3);
    let session = connect(&simulation, "a").await;
    create(&*session, "/n", CreateMode::Persistent).await;
    let (_, _, one) = session.get_and_watch("/n").await.unwrap();
    let (_, _, two) = session.get_and_watch("/n").await.unwrap();
    let (_, children) = session.list_and_watch("/n").await.unwrap();
    drop(one);
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(
        simulation.counters().watches(),
        2,
        "the other one still stands"
    );
    drop((two, children));
    drop(session.get_and_watch("/n"));
    drop(session.exists_and_watch("/none"));
    drop(session.get_and_watch("/none"));
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(simulation.counters().watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn set_anew_while_one_is_dropped_still_stand() {
    let simulation = one_server(4);
    let session = connect(&simulation, "a").await;
    create(&*session, "/n", CreateMode::Persistent).await;
    let (_, _, earlier) = session.get_and_watch("/n").await.unwrap();
    let anew = session.get_and_watch("/n");
    drop(earlier);
    let (_, _, watch) = anew.await.unwrap();
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(simulation.counters().watches(), 1);
    session.delete("/n").await.unwrap();
    assert_eq!(watch.await, Event::Deleted);
}

#[tokio::test(start_paused = true)]
async fn survive_a_reconnect_and_tell_what_happened_meanwhile() {
    for seed in 0..20 {
        let simulation = three_servers(seed);
        let session = connect(&simulation, "a").await;
        for path in ["/gone", "/stays", "/set"] {
            create(&*session, path, CreateMode::Persistent).await;
        }
        let (_, _, gone) = session.get_and_watch("/gone").await.unwrap();
        let (_, _, stays) = session.get_and_watch("/stays").await.unwrap();
        let (_, _, set) = session.get_and_watch("/set").await.unwrap();
        let (_, comes) = session.exists_and_watch("/comes").await.unwrap();
        simulation.process("a").partition(seconds(3));
        tokio::time::sleep(milliseconds(100)).await;
        let administrator = simulation.administrator();
        administrator.delete("/gone").unwrap();
        administrator.set_data("/set", b"1").unwrap();
        administrator
            .create("/comes", b"", CreateMode::Persistent)
            .unwrap();
        assert_eq!(gone.await, Event::Deleted);
        assert_eq!(
            (set.await, comes.await),
            (Event::DataChanged, Event::Created)
        );
        tokio::time::sleep(seconds(1)).await;
        administrator.delete("/stays").unwrap();
        assert_eq!(stays.await, Event::Deleted);
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_paths_are_set_anew_at_a_reconnect() {
    let simulation = one_server(5);
    let session = connect(&simulation, "a").await;
    let mut watches = Vec::new();
    for number in 0..1500 {
        let path = format!("/{number:0>100}");
        watches.push(session.exists_and_watch(&path).await.unwrap());
    }
    simulation.faults().disconnect(session.id());
    tokio::time::sleep(TIMEOUT).await;
    assert_eq!(session.state(), ConnectionState::Connected);
    assert_eq!(simulation.counters().watches(), 1500);
    // Each has at most 128 KiB.
    assert_eq!(simulation.counters().requests(RequestKind::SetWatches), 2);
}
