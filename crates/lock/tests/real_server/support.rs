//! What the tests share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_lock::common::WaitStrategy;
use zookeeper_recipes_lock::{
    ConnectOptions, ExclusiveLock, Hold, LockOptions, Recipe, Session, SingleNodeLock,
};
use zookeeper_recipes_testkit::{Server, ServerOptions};

pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(4);
pub(crate) const TICK: Duration = Duration::from_millis(500);
/// Longer than anything here may take: a test that gets there has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn server() -> Server {
    Server::start(ServerOptions::new().tick_time(TICK))
        .await
        .expect("a server starts")
}

pub(crate) async fn session(server: &Server) -> Session {
    session_of(server, SESSION_TIMEOUT).await
}

pub(crate) async fn session_of(server: &Server, timeout: Duration) -> Session {
    session_at(&server.connect_string(), timeout).await
}

pub(crate) async fn session_at(connect_string: &str, timeout: Duration) -> Session {
    let options = ConnectOptions::new().session_timeout(timeout).tick(TICK);
    Session::connect_with(connect_string, options)
        .await
        .expect("a session opens")
}

/// A client beside the sessions under test, for what administrators and others do.
pub(crate) async fn administrator(server: &Server) -> Client {
    Client::connect(&server.connect_string())
        .await
        .expect("a client connects")
}

pub(crate) async fn create(client: &Client, path: &str) {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client
        .create(path, b"", &options)
        .await
        .expect("a znode can be created");
}

pub(crate) async fn children(client: &Client, path: &str) -> Vec<String> {
    match client.list_children(path).await {
        Err(zookeeper_client::Error::NoNode) => Vec::new(),
        children => children.expect("the children can be listed"),
    }
}

/// Waits until a condition holds, and fails the test where that takes too long.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let met = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let met = tokio::time::timeout(PATIENCE, met).await;
    assert!(met.is_ok(), "{what}: not within {PATIENCE:?}");
}

/// Waits until the directory is empty and the server has no watch left.
pub(crate) async fn assert_nothing_left(server: &Server, path: &str) {
    let client = administrator(server).await;
    eventually("the directory is empty", || async {
        children(&client, path).await.is_empty()
    })
    .await;
    eventually("no watch is left", || async {
        server.monitor().await.expect("the server answers").watches == 0
    })
    .await;
}

/// Waits until so many contenders stand in the queue.
pub(crate) async fn queue_length(recipe: &dyn Recipe, length: usize) {
    eventually("the contenders have queued", || async {
        recipe
            .contenders()
            .await
            .expect("the queue can be read")
            .len()
            == length
    })
    .await;
}

/// How many watchers the server has notified.
pub(crate) async fn notifications(server: &Server) -> u64 {
    let monitor = server.monitor().await.expect("the server answers");
    let notifications = monitor.notifications();
    notifications.expect("a server of 3.6 or newer counts them")
}

/// The ways to make a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    SingleNode,
    Poll,
    Parent,
    Predecessor,
}

impl Way {
    pub(crate) const ALL: [Way; 4] = [Way::SingleNode, Way::Poll, Way::Parent, Way::Predecessor];

    pub(crate) fn lock(self, session: &Session, path: &str) -> Box<dyn Recipe> {
        let strategy = match self {
            Way::SingleNode => {
                return Box::new(SingleNodeLock::new(session, path).expect("a good path"));
            }
            Way::Poll => WaitStrategy::Poll(Duration::from_millis(20)),
            Way::Parent => WaitStrategy::Parent,
            Way::Predecessor => WaitStrategy::Predecessor,
        };
        let options = LockOptions::new().strategy(strategy);
        Box::new(ExclusiveLock::with_options(session, path, options).expect("a good path"))
    }

    pub(crate) fn keeps_order(self) -> bool {
        !matches!(self, Way::SingleNode)
    }
}

/// The critical section: knows how many are inside, and who has been.
#[derive(Debug, Default)]
pub(crate) struct CriticalSection {
    inside: AtomicUsize,
    tokens: Mutex<Vec<i64>>,
}

impl CriticalSection {
    /// Goes in and out again while `hold` is held.
    pub(crate) async fn attempt(&self, hold: &Hold, stay: Duration) {
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two in the critical section");
        self.tokens
            .lock()
            .expect("no panic within")
            .push(hold.fencing_token().get());
        tokio::time::sleep(stay).await;
        assert!(hold.is_held(), "still held on leaving: {:?}", hold.state());
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn tokens(&self) -> Vec<i64> {
        self.tokens.lock().expect("no panic within").clone()
    }
}
