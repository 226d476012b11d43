//! Znodes that get the name of a znode that has gone: at the end of the count they do.

use crate::support::*;

const PATH: &str = "/queue";

/// A create whose outcome is unknown is repeated with the same identity. So the znode of a
/// contender that somebody has deleted can come again, behind the contenders that waited for it.
#[tokio::test(start_paused = true)]
async fn waiter_waits_for_no_later_znode_of_the_same_name() {
    for reconnects in [true, false] {
        let simulation = Simulation::default();
        let administrator = simulation.administrator();
        make(&simulation, PATH);
        end_the_count(&simulation, PATH);
        let hold = lock_of(&simulation, "holder", PATH).await.acquire().await;
        let hold = hold.expect("it is free");
        let waiter = lock_of(&simulation, "waiter", PATH).await;
        let waiting = spawned(&waiter);
        let process = simulation.process("waiter");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(administrator.children(PATH).len(), 2);
        let lists = || simulation.counters().requests(RequestKind::List);
        let before = lists();
        sleep(Duration::from_secs(5)).await;
        assert_eq!(lists(), before, "it waits");
        if reconnects {
            process.partition(Duration::from_secs(1));
            process.disconnect();
        }
        let path = hold.node_path().to_owned();
        delete(&simulation, &path);
        make(&simulation, &path);
        let granted = timeout(Duration::from_secs(60), waiting).await;
        let next = granted.expect("it is first now").expect("no panic");
        assert!(next.expect("it is acquired").is_held(), "{reconnects}");
    }
}
