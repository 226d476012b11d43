//! One release wakes whom it concerns: counted by the server.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use zookeeper_recipes_lock::Session;
use zookeeper_recipes_suite::{
    LOCK, LOCK_BY_PARENT, LOCK_BY_POLLING, LOCK_OF_ONE_ZNODE, PATIENCE, POLL, TestedRecipe,
    eventually, notifications, queue_length, server, session,
};
use zookeeper_recipes_testkit::Server;

const WAITERS: usize = 10;

/// A session timeout that a busy machine does not make use of: what a server reports to a client
/// that comes back is not counted as a notification.
const STEADY: Duration = Duration::from_secs(10);

/// One holder, and waiters that hold until they are ordered to leave.
struct Crowd {
    server: Server,
    sessions: Vec<Session>,
    tasks: JoinSet<()>,
    go: Arc<Notify>,
    entered: mpsc::UnboundedReceiver<Holder>,
    holder: Holder,
}

/// Who holds: its znode and its session.
#[derive(Debug)]
struct Holder {
    path: String,
    session: i64,
}

async fn crowd(way: TestedRecipe) -> Crowd {
    let server = server().await;
    let (sender, mut entered) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    let mut sessions = Vec::new();
    let mut holder = None;
    for number in 0..=WAITERS {
        let session = session(&server, STEADY).await;
        let lock = way.at(&session, "/locks/waking", 1);
        let (sender, go) = (sender.clone(), go.clone());
        tasks.spawn(async move {
            let hold = lock.acquire().await.expect("the lock is acquired");
            let holder = Holder {
                path: hold.node_path().to_owned(),
                session: hold.session_id().0,
            };
            sender.send(holder).expect("the test listens");
            go.notified().await;
            hold.release().await.expect("the lock is released");
        });
        if number == 0 {
            holder = entered.recv().await;
        } else if way.queues {
            queue_length(&*way.at(&session, "/locks/waking", 1), number + 1).await;
        }
        sessions.push(session);
    }
    let holder = holder.expect("the first holds");
    Crowd {
        server,
        sessions,
        tasks,
        go,
        entered,
        holder,
    }
}

impl Crowd {
    /// The sessions that watch this znode, the holder's left out.
    async fn other_watchers(&self, path: &str) -> usize {
        let watches = self.server.watches().await.expect("the server answers");
        let watchers = watches.get(path).into_iter().flatten();
        watchers
            .filter(|session| **session != self.holder.session)
            .count()
    }

    /// Waits until so many sessions watch this znode, the holder's left out.
    async fn watched_by(&self, path: &str, watchers: usize) {
        eventually("the waiters watch", || async {
            self.other_watchers(path).await == watchers
        })
        .await;
    }

    async fn watches_its_own(&self) -> bool {
        let watches = self.server.watches().await.expect("the server answers");
        watches
            .get(&self.holder.path)
            .is_some_and(|sessions| sessions.contains(&self.holder.session))
    }

    /// The holder releases, and the next one holds.
    ///
    /// A server counts notifications once it has sent them, and before it answers the release.
    async fn release_one(&mut self) {
        self.go.notify_one();
        self.holder = self.entered.recv().await.expect("the next one holds");
        let released = self.tasks.join_next().await.expect("the holder releases");
        released.expect("no panic");
    }

    async fn finish(mut self) {
        let all = async {
            self.go.notify_one();
            while let Some(done) = self.tasks.join_next().await {
                done.expect("no panic");
                self.go.notify_one();
            }
        };
        tokio::time::timeout(PATIENCE, all)
            .await
            .expect("all get through");
        for session in self.sessions {
            session.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_the_predecessor_a_release_wakes_one() {
    let mut crowd = crowd(LOCK).await;
    for _ in 0..3 {
        let path = crowd.holder.path.clone();
        crowd.watched_by(&path, 1).await;
        // A holder that stays watches its own znode, so as to learn of its deletion by others.
        eventually("the holder watches its own znode", || {
            crowd.watches_its_own()
        })
        .await;
        let before = notifications(&crowd.server).await;
        crowd.release_one().await;
        let notified = notifications(&crowd.server).await - before;
        assert_eq!(notified, 2, "the holder of its own release, and one waiter");
    }
    crowd.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_wakes_all_who_watch_the_parent_or_the_only_znode_and_none_who_polls() {
    for (way, watching) in [
        (LOCK_BY_PARENT, WAITERS),
        (LOCK_OF_ONE_ZNODE, WAITERS),
        (LOCK_BY_POLLING.waiting(POLL), 0),
    ] {
        let mut crowd = crowd(way).await;
        eventually("the holder watches its own znode", || {
            crowd.watches_its_own()
        })
        .await;
        // The server lists no watches on children, but it counts them.
        eventually("the waiters watch", || async {
            let monitor = crowd.server.monitor().await.expect("the server answers");
            monitor.watches == 1 + watching as u64
        })
        .await;
        let before = notifications(&crowd.server).await;
        crowd.release_one().await;
        let notified = notifications(&crowd.server).await - before;
        // The holder of its own release, and every waiter that watches.
        assert_eq!(notified, 1 + watching as u64, "{way:?}");
        crowd.finish().await;
    }
}
