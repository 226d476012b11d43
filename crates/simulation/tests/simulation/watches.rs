//! Watches fire in order, and survive a reconnect. The differential test of the embedded server shows
//! for what they fire.

use crate::support::{connect, create, milliseconds, one_server, seconds, three_servers};
use futures_util::FutureExt;
use zookeeper_recipes_core::ensemble::{CreateMode, Event};

#[tokio::test(start_paused = true)]
async fn fire_before_a_read_that_sees_the_change() {
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
async fn survive_a_reconnect_and_report_what_happened_meanwhile() {
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
