//! Watches fire in order. The differential test of the embedded server shows for what they fire, and
//! the fault tests move a session with watches ten thousand times.

use crate::support::{connect, create, servers};
use futures_util::FutureExt;
use zookeeper_recipes_core::ensemble::{CreateMode, EventType, WatchEvent};

#[tokio::test(start_paused = true)]
async fn fire_before_a_read_that_sees_the_change() {
    for seed in 0..50 {
        let simulation = servers(seed, 3);
        let session = connect(&simulation, "a").await;
        let other = connect(&simulation, "b").await;
        create(&session, "/n", CreateMode::Persistent).await;
        let (_, _, mut watch) = session.get_and_watch("/n").await.unwrap();
        let deletion = other.delete("/n");
        while session.get("/n").await.is_ok() {
            assert_eq!((&mut watch).now_or_never(), None);
        }
        assert_eq!(
            watch.now_or_never(),
            Some(WatchEvent::Fired(EventType::NodeDeleted))
        );
        deletion.await.unwrap();
    }
}
