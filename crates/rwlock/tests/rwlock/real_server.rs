//! What the read/write lock promises, on a real server.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinSet;
use zookeeper_recipes_core::ensemble::CreateMode;
use zookeeper_recipes_core::{Identity, NodePath, QueueOptions};
use zookeeper_recipes_rwlock::{Error, Hold, RwLock, RwLockOptions, Session};
use zookeeper_recipes_suite::{
    QUIET, assert_nothing_left, eventually, in_time, notifications, proxy, queue_length, server,
    session, watchers,
};

const PATH: &str = "/locks/catalogue";

type Fallible = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// A reader in each session, in a task of its own.
fn read(sessions: &[Session]) -> Result<JoinSet<Result<Hold, Error>>, Error> {
    let mut readers = JoinSet::new();
    for session in sessions {
        let lock = RwLock::new(session, PATH)?;
        readers.spawn(async move { lock.read().acquire().await });
    }
    Ok(readers)
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_release_wakes_each_reader_once_and_a_readers_release_wakes_no_reader() -> Fallible
{
    const READERS: usize = 50;
    let server = server().await;
    let first = session(&server, QUIET).await;
    let writing = RwLock::new(&first, PATH)?.write().acquire().await?;

    let sessions = join_all((0..READERS).map(|_| session(&server, QUIET))).await;
    let readers = read(&sessions)?;
    let writers_znode = writing.node_path().to_owned();
    let own = first.id().ok_or("a session is open")?.0;
    let watching = async || watchers(&server, &writers_znode).await;
    eventually("all the readers watch the writer", async || {
        let watching = watching().await;
        watching.iter().filter(|id| **id != own).count() == READERS
    })
    .await;
    // The holder watches its znode, too, if its session has had time for that.
    let watching = watching().await.len() as u64;
    let fired_before = notifications(&server).await;
    writing.release().await?;
    let holds: Vec<Hold> = in_time("the readers", readers.join_all())
        .await
        .into_iter()
        .collect::<Result<_, _>>()?;
    assert_eq!(notifications(&server).await - fired_before, watching);

    // A writer, and readers behind it, so that there are waiters to be woken in vain.
    let second = session(&server, QUIET).await;
    let lock = RwLock::new(&second, PATH)?;
    let writer = tokio::spawn({
        let lock = lock.clone();
        async move { lock.write().acquire().await }
    });
    queue_length(lock.read(), READERS + 1).await;
    let waiting = read(&sessions[..5])?;
    let queue = lock.read().contenders();
    let last_reader = queue.await?[READERS - 1].name.clone();
    let last_reader = format!("{PATH}/{last_reader}");
    eventually("the writer watches the last reader", async || {
        watchers(&server, &last_reader).await.len() == 2
    })
    .await;
    queue_length(lock.read(), READERS + 6).await;

    let (last, others): (Vec<Hold>, Vec<Hold>) = holds
        .into_iter()
        .partition(|hold| hold.node_path() == last_reader);
    for hold in others {
        let own = hold.session_id().0;
        assert_eq!(watchers(&server, hold.node_path()).await, [own]);
        let fired_before = notifications(&server).await;
        hold.release().await?;
        // The one is the watch of the reader itself.
        assert_eq!(notifications(&server).await - fired_before, 1);
    }
    assert!(!writer.is_finished());
    for hold in last {
        hold.release().await?;
    }
    in_time("the writer", writer).await??.release().await?;
    for hold in in_time("the readers behind it", waiting.join_all()).await {
        hold?.release().await?;
    }
    assert_nothing_left(&server).await;
    Ok(())
}

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
    let kinds: Vec<bool> = names
        .iter()
        .map(|entry| entry.name.contains("READ"))
        .collect();
    assert_eq!(kinds, [true, true, true, false, true]);
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
    in_time("the last reader", reader_behind)
        .await??
        .release()
        .await?;
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn writer_right_behind_a_downgrade_waits_for_the_reader_that_it_became() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    let lock = RwLock::new(&session, PATH)?;
    let writing = lock.write().acquire().await?;
    let mut queued = Queued { lock, length: 1 };
    let writer = queued.writer().await;
    let reader = queued.reader().await;

    let reading = writing.downgrade().await?;
    eventually(
        "the writer has looked, and watches the reader",
        async || !watchers(&server, reading.node_path()).await.is_empty(),
    )
    .await;
    assert!(!writer.is_finished() && !reader.is_finished());
    let tokens = [reading.fencing_token().get(), {
        reading.release().await?;
        let writing = in_time("the writer", writer).await??;
        assert!(!reader.is_finished());
        let token = writing.fencing_token().get();
        writing.release().await?;
        token
    }];
    assert!(tokens.is_sorted(), "{tokens:?}");
    in_time("the reader", reader).await??.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn curators_downgrade_and_kazoos_names_are_honoured() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    let lock = RwLock::new(&session, PATH)?;
    // This creates the directory.
    lock.read().acquire().await?.release().await?;
    let raw = session.server(&NodePath::new(PATH)?).await?;
    let acl = QueueOptions::new().get_acl().to_vec();
    let create =
        async |name: &str, mode| raw.create(&format!("{PATH}/{name}"), b"", mode, &acl).await;
    let sequential = CreateMode::EphemeralSequential;

    let curators = create(&Identity::random().name("__WRIT__"), sequential).await?;
    let mut queued = Queued { lock, length: 1 };
    let reader = queued.reader().await;
    queued.length += 1;
    let number = &curators.path[curators.path.len() - 10..];
    let reading = Identity::random().name("__READ__") + number;
    let reading = create(&reading, CreateMode::Ephemeral).await?;
    let writer = queued.writer().await;
    raw.delete(&curators.path).await?;
    in_time("the reader", reader).await??.release().await?;
    eventually("the writer watches Curator's reader", async || {
        !watchers(&server, &reading.path).await.is_empty()
    })
    .await;
    assert!(!writer.is_finished());
    raw.delete(&reading.path).await?;
    in_time("the writer", writer).await??.release().await?;

    for (kazoos, lets_readers_in) in [("__rlock__", true), ("__lock__", false)] {
        let name = format!("{}{kazoos}", "0123456789abcdef".repeat(2));
        let kazoos = create(&name, sequential).await?;
        let reading = queued.lock.read().try_acquire().await?;
        assert_eq!(reading.is_some(), lets_readers_in, "{name}");
        assert!(queued.lock.write().try_acquire().await?.is_none(), "{name}");
        raw.delete(&kazoos.path).await?;
    }
    drop(raw);
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn writer_that_gives_up_behind_a_reader_bars_nobody() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    let lock = RwLock::new(&session, PATH)?;
    let soon = Duration::from_millis(50);
    let reading = lock.read().acquire().await?;
    assert!(lock.write().try_acquire().await?.is_none());
    let error = lock.write().acquire_timeout(soon).await.unwrap_err();
    assert!(matches!(error, Error::DeadlineElapsed { .. }), "{error}");
    queue_length(lock.read(), 1).await;
    // No contender that gave up blocks another.
    lock.read()
        .try_acquire()
        .await?
        .expect("a reader")
        .release()
        .await?;
    reading.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
}
