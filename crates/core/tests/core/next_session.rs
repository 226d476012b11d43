//! A session that continues in another ZooKeeper session while nobody polls one of its attempts.

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(10);
const MOMENTS: u64 = 60;

/// The server puts the client into another session, this long before the second attempt begins.
async fn assert_no_orphan(moment: Duration, contended: bool) {
    let simulation = simulation!(session_timeout: TIMEOUT, forgets_sessions: true);
    let session = simulated_session(&simulation, "one").await;
    let other = simulated_session(&simulation, "other").await;
    for path in ["/locks/a", "/locks/b"] {
        let hold = lock(&session, path).acquire().await.expect("free");
        hold.release().await.expect("it is held");
    }
    let first = match contended {
        true => Some(lock(&other, "/locks/b").acquire().await.expect("free")),
        false => None,
    };
    let unpolled = lock(&session, "/locks/b");
    let unpolled = begun(unpolled.acquire());
    sleep(Duration::from_millis(50)).await;
    simulation.process("one").disconnect();
    sleep(moment).await;
    // It may fail with its session.
    drop(timeout(2 * TIMEOUT, lock(&session, "/locks/a").acquire()).await);
    let next = timeout(6 * TIMEOUT, lock(&other, "/locks/a").acquire()).await;
    let next = next.unwrap_or_else(|_| panic!("{moment:?}, {contended}: it is barred"));
    assert!(next.expect("its turn").is_held());
    drop((unpolled, first));
}

#[tokio::test(start_paused = true)]
async fn attempt_that_nobody_polls_leaves_no_znode_of_another_attempt_in_the_next_session() {
    for moment in (0..MOMENTS).map(Duration::from_millis) {
        assert_no_orphan(moment, false).await;
        assert_no_orphan(moment, true).await;
    }
}
