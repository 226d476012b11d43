//! One release wakes whom it concerns: counted by the server.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use zookeeper_recipes_lock::Session;
use zookeeper_recipes_testkit::Server;

use crate::support::{
    PATIENCE, Way, children_notifications, deletion_notifications, eventually, queue_length,
    server, session,
};

const WAITERS: usize = 10;

/// One holder, and waiters that hold until they are told to go.
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

async fn crowd(way: Way) -> Crowd {
    let server = server().await;
    let (sender, mut entered) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    let mut sessions = Vec::new();
    let mut holder = None;
    for number in 0..=WAITERS {
        let session = session(&server).await;
        let lock = way.lock(&session, "/locks/waking");
        let (sender, go) = (sender.clone(), go.clone());
        tasks.spawn(async move {
            let hold = lock.acquire().await.expect("the lock is acquired");
            let holder = Holder {
                path: hold.path().to_owned(),
                session: hold.session_id().0,
            };
            sender.send(holder).expect("the test listens");
            go.notified().await;
            hold.release().await.expect("the lock is released");
        });
        if number == 0 {
            holder = entered.recv().await;
        } else if way.keeps_order() {
            queue_length(&*way.lock(&session, "/locks/waking"), number + 1).await;
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

    async fn release_one(&mut self) {
        self.go.notify_one();
        self.holder = self.entered.recv().await.expect("the next one holds");
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
    let mut crowd = crowd(Way::Predecessor).await;
    for _ in 0..3 {
        let path = crowd.holder.path.clone();
        crowd.watched_by(&path, 1).await;
        // A holder that stays watches its own znode, so as to learn of its deletion by others.
        eventually("the holder watches its own znode", || {
            crowd.watches_its_own()
        })
        .await;
        let before = deletion_notifications(&crowd.server).await;
        crowd.release_one().await;
        let notified = deletion_notifications(&crowd.server).await - before;
        assert_eq!(
            notified, 2.0,
            "the holder of its own deletion, and one waiter"
        );
    }
    crowd.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_the_parent_a_release_wakes_all() {
    let mut crowd = crowd(Way::Parent).await;
    // The server lists no watches on children, but it counts them.
    eventually("the holder watches its own znode", || {
        crowd.watches_its_own()
    })
    .await;
    eventually("the waiters watch", || async {
        crowd
            .server
            .monitor()
            .await
            .expect("the server answers")
            .watches
            == 1 + WAITERS as u64
    })
    .await;
    let before = children_notifications(&crowd.server).await;
    crowd.release_one().await;
    let notified = children_notifications(&crowd.server).await - before;
    assert_eq!(notified, WAITERS as f64, "every waiter");
    crowd.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_single_node_a_release_wakes_all() {
    let mut crowd = crowd(Way::SingleNode).await;
    crowd.watched_by("/locks/waking", WAITERS).await;
    eventually("the holder watches its own znode", || {
        crowd.watches_its_own()
    })
    .await;
    let before = deletion_notifications(&crowd.server).await;
    crowd.release_one().await;
    let notified = deletion_notifications(&crowd.server).await - before;
    assert_eq!(
        notified,
        1.0 + WAITERS as f64,
        "the holder, and every waiter"
    );
    crowd.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_sets_no_watch() {
    let mut crowd = crowd(Way::Poll).await;
    let children_before = children_notifications(&crowd.server).await;
    assert_eq!(crowd.other_watchers(&crowd.holder.path).await, 0);
    crowd.release_one().await;
    assert_eq!(children_notifications(&crowd.server).await, children_before);
    crowd.finish().await;
}
