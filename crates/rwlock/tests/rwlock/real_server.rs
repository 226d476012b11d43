//! What the read/write lock promises, on a real server.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinSet;
use zookeeper_recipes_rwlock::{Error, Hold, Recipe, RwLock, RwLockOptions, Session};
use zookeeper_recipes_suite::{
    QUIET, assert_nothing_left, eventually, in_time, proxy, queue_length, server, session, watchers,
};

const PATH: &str = "/locks/catalogue";

type Fallible = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Counted between the readers and the server, over sessions that say nothing by themselves as long
/// as the test runs.
#[tokio::test(flavor = "multi_thread")]
async fn readers_behind_a_writer_are_notified_once_each_and_ask_nothing() -> Fallible {
    const READERS: usize = 5;
    let server = server().await;
    let first = session(&server, Duration::from_secs(6)).await;
    let writing = RwLock::new(&first, PATH)?.write().acquire().await?;
    let proxy = proxy(&server).await;
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let session = session(&proxy, QUIET).await;
        let lock = RwLock::new(&session, PATH)?;
        readers.spawn(async move { (lock.read().acquire().await, session) });
    }
    // The writer is among them, since a holder watches its own znode after a while.
    eventually("all watch the writer", async || {
        watchers(&server, writing.node_path()).await.len() == READERS + 1
    })
    .await;
    let before = proxy.counters();
    writing.release().await?;
    let holds = in_time("the readers", readers.join_all()).await;
    let counted = proxy.counters().since(&before);
    assert_eq!(counted.requests(), 0, "{counted:?}");
    assert_eq!(counted.notifications(), READERS as u64, "{counted:?}");
    for (hold, _session) in holds {
        hold?.release().await?;
    }
    assert_nothing_left(&server).await;
    Ok(())
}

/// A writer that holds, and the waiters behind it, one by one.
struct Queued {
    lock: RwLock,
    length: usize,
}

impl Queued {
    async fn add(
        &mut self,
        acquire: impl Future<Output = Result<Hold, Error>> + Send + 'static,
    ) -> tokio::task::JoinHandle<Result<Hold, Error>> {
        let task = tokio::spawn(acquire);
        self.length += 1;
        queue_length(self.lock.read(), self.length).await;
        task
    }

    async fn reader(&mut self) -> tokio::task::JoinHandle<Result<Hold, Error>> {
        let reader = self.lock.read().clone();
        self.add(async move { reader.acquire().await }).await
    }

    async fn writer(&mut self) -> tokio::task::JoinHandle<Result<Hold, Error>> {
        let writer = self.lock.write().clone();
        self.add(async move { Ok(writer.acquire().await?.into_hold()) })
            .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn downgrade_lets_the_readers_behind_in_and_no_writer() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    let options = RwLockOptions::new().data("node-7");
    let lock = RwLock::with_options(&session, PATH, options)?;
    let writing = lock.write().acquire().await?;
    let token = writing.fencing_token();
    let mut queued = Queued { lock, length: 1 };
    let readers = [queued.reader().await, queued.reader().await];
    let writer = queued.writer().await;
    let reader_behind = queued.reader().await;

    let reading = in_time("the downgrade", writing.downgrade()).await?;
    assert!(reading.is_held());
    assert_eq!(reading.fencing_token(), token);
    let mut holds = vec![reading];
    for reader in in_time("the readers", join_all(readers)).await {
        holds.push(reader??);
    }
    let names = queued.lock.read().contenders().await?;
    let reads = names.iter().map(|entry| entry.name.contains("READ"));
    assert!(reads.eq([true, true, true, false, true]), "{names:?}");
    assert!(names.iter().all(|entry| entry.data == b"node-7"));

    for hold in holds {
        assert!(!writer.is_finished() && !reader_behind.is_finished());
        assert!(hold.is_held());
        hold.release().await?;
    }
    let writing = in_time("the writer", writer).await??;
    assert!(writing.fencing_token() > token);
    assert!(!reader_behind.is_finished());
    writing.release().await?;
    let last = in_time("the last reader", reader_behind).await??;
    last.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
}
