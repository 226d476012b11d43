//! Fencing tokens, of which each is greater than the one before.

use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{administrator, server, session};

use super::support::SESSION_TIMEOUT;

#[tokio::test(flavor = "multi_thread")]
async fn tokens_grow_over_the_directory_being_deleted() {
    let server = server().await;
    let client = administrator(&server).await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = ExclusiveLock::new(&session, "/locks/reaped").expect("a good path");
    let mut last = 0;
    for _ in 0..5 {
        let hold = lock.acquire().await.expect("the lock is acquired");
        assert!(hold.fencing_token().get() > last);
        assert!(
            hold.node_path().ends_with("-lock-0000000000"),
            "the number begins anew"
        );
        last = hold.fencing_token().get();
        hold.release().await.expect("the lock is released");
        client
            .delete("/locks/reaped", None)
            .await
            .expect("the directory is empty");
        client
            .delete("/locks", None)
            .await
            .expect("the directory is empty");
    }
}
