//! A guarded write to the holder's own znode.

use crate::support::*;

/// Waiters take a write to the holder's znode for its release.
#[tokio::test(start_paused = true)]
async fn guarded_write_to_the_holders_own_znode_is_refused_and_lets_nobody_in() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "holder").await;
    let queue = lock(&session, "/queue");
    let hold = queue.acquire().await.expect("it is free");
    let other = lock_of(&simulation, "waiter", "/queue").await;
    let waiting = spawned(&other);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let own = hold.node_path();
    let writes = [
        hold.transaction().set_data(own, b"mine"),
        hold.transaction().delete(own),
        hold.transaction()
            .operation(Operation::set_data(own, []).at_version(0)),
    ];
    for write in writes {
        let refused = write.commit().await.expect_err("it is its own");
        assert!(matches!(refused, Error::InvalidInput(_)), "{refused}");
        assert!(refused.to_string().contains(own), "{refused}");
    }
    // The ensemble lets the process write to each of its contenders.
    let beside = queue_by(&session, "/beside", FIRST_ALONE);
    let beside = beside.acquire().await.expect("it is free");
    let write = hold.transaction().set_data(beside.node_path(), b"mine");
    let refused = write.commit().await.expect_err("it is another holder's");
    assert!(matches!(refused, Error::InvalidInput(_)), "{refused}");
    assert!(beside.is_held());
    let look = hold.transaction().check(own).commit().await;
    look.expect("it writes nothing");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(hold.is_held());
    assert!(!waiting.is_finished());
    hold.release().await.expect("it is held");
    let next = waiting.await.expect("no panic").expect("its turn");
    assert!(next.is_held());
}
