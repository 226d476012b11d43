//! What the tests share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_core::{
    ConnectOptions, Error, Hold, LossReason, Recipe, Session, WaitStrategy,
};
use zookeeper_recipes_testkit::proxy::{Operation, Proxy};
use zookeeper_recipes_testkit::{Server, ServerOptions};

use crate::kinds::{KINDS, Kind};

pub(crate) const TICK: Duration = Duration::from_millis(500);
/// For tests that wait for a session's expiry.
pub(crate) const SHORT: Duration = Duration::from_secs(3);
/// For tests in which no session may expire, however busy the machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// How much later than it should something may come on a busy machine.
pub(crate) const LATE: Duration = Duration::from_secs(15);
/// Longer than anything here may take: a test that gets there has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn server() -> Server {
    Server::start(ServerOptions::new().tick_time(TICK))
        .await
        .expect("a server starts")
}

pub(crate) async fn proxy(server: &Server) -> Proxy {
    Proxy::start(server.connect_string())
        .await
        .expect("a proxy starts")
}

pub(crate) async fn session(connect_string: &str, timeout: Duration) -> Session {
    session_told(connect_string, timeout, TICK).await
}

/// A session with servers of this tick.
pub(crate) async fn session_told(
    connect_string: &str,
    timeout: Duration,
    tick: Duration,
) -> Session {
    let options = ConnectOptions::new()
        .session_timeout(timeout)
        .connection_timeout(PATIENCE)
        .tick(tick);
    Session::connect_with(connect_string, options)
        .await
        .expect("a session opens")
}

/// A client beside the sessions under test, for what administrators and others do.
pub(crate) async fn administrator(server: &Server) -> Client {
    Client::connector()
        .with_session_timeout(LONG)
        .connect(&server.connect_string())
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

/// A number that the environment may give.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is {value:?}, which is no number")))
}

/// Does work in a thread with a runtime of its own, which it may block.
pub(crate) fn in_own_runtime<T: Send + 'static>(
    work: impl AsyncFnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(work())
    })
}

/// Waits for something that must not hang.
pub(crate) async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}

/// Waits until a condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let met = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    in_time(what, met).await;
}

/// Waits until so many contenders stand in the queue, as somebody sees who is well connected.
/// A recipe without a queue shows its holder only.
pub(crate) async fn queue_length(kind: Kind, recipe: &dyn Recipe, length: usize) {
    let length = if kind.single_node {
        length.min(1)
    } else {
        length
    };
    eventually("the contenders have queued", || async {
        let contenders = recipe.contenders().await.expect("the queue can be read");
        contenders.len() == length
    })
    .await;
}

pub(crate) type Acquiring = JoinHandle<Result<Hold, Error>>;

pub(crate) fn acquire(recipe: Box<dyn Recipe>) -> Acquiring {
    tokio::spawn(async move { recipe.acquire().await })
}

pub(crate) async fn acquired(what: &str, acquiring: Acquiring) -> Hold {
    in_time(what, acquiring)
        .await
        .expect("no panic")
        .unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Each kind can be acquired and released within this time, though the session may have to be
/// opened anew for that.
pub(crate) async fn works_with_each_kind(session: &Session, day: &str, most: Duration) {
    for &kind in KINDS {
        let acquiring = async {
            loop {
                match kind.on(session, day).acquire().await {
                    Err(Error::SessionOver { .. }) => {}
                    acquired => return acquired,
                }
            }
        };
        let Ok(acquired) = tokio::time::timeout(most, acquiring).await else {
            panic!("{} {day}: not acquired within {most:?}", kind.name);
        };
        let hold = acquired.unwrap_or_else(|error| panic!("{} {day}: {error}", kind.name));
        assert!(hold.is_held(), "{} {day}: {:?}", kind.name, hold.state());
        hold.release().await.expect("it is released");
    }
}

/// A hold that is to be lost, and an attempt that waits for its end.
pub(crate) struct Succession {
    what: String,
    loss: JoinHandle<(Instant, LossReason, Arc<Hold>)>,
    grant: JoinHandle<(Instant, Hold)>,
}

/// A hold that was lost, and the next one, which came later.
pub(crate) struct Succeeded {
    pub(crate) granted_at: Instant,
    pub(crate) lost: Arc<Hold>,
    pub(crate) next: Hold,
}

impl Succession {
    /// Waits for the loss and for the grant in the runtime that this is called in.
    pub(crate) fn begin(
        what: impl Into<String>,
        hold: impl Into<Arc<Hold>>,
        next: Acquiring,
    ) -> Succession {
        let hold = hold.into();
        Succession {
            what: what.into(),
            loss: tokio::spawn(async move {
                let reason = hold.lost().await;
                (Instant::now(), reason, hold)
            }),
            grant: tokio::spawn(async move {
                let next = next.await.expect("no panic").expect("it is acquired");
                (Instant::now(), next)
            }),
        }
    }

    /// Waits until the next one holds.
    pub(crate) async fn granted(&self) {
        let what = format!("{}: the next one", self.what);
        eventually(&what, || async { self.grant.is_finished() }).await;
    }

    /// The loss must be told before the next one holds.
    pub(crate) async fn in_order(self) -> Succeeded {
        let what = self.what;
        let grant = in_time(&format!("{what}: the next one"), self.grant).await;
        let (granted_at, next) = grant.expect("no panic");
        let loss = in_time(&format!("{what}: the loss"), self.loss).await;
        let (lost_at, reason, lost) = loss.expect("no panic");
        assert!(
            lost_at < granted_at,
            "{what}: the loss ({reason}) is told {:?} after the next one holds",
            lost_at - granted_at
        );
        assert!(!lost.is_held(), "{what}: what is lost stays lost");
        assert!(next.is_held(), "{what}: {:?}", next.state());
        assert!(lost.fencing_token() < next.fencing_token(), "{what}");
        Succeeded {
            granted_at,
            lost,
            next,
        }
    }
}

pub(crate) async fn children(client: &Client, path: &str) -> Vec<String> {
    match client.list_children(path).await {
        Err(zookeeper_client::Error::NoNode) => Vec::new(),
        children => children.expect("the children can be listed"),
    }
}

/// How many contenders were ever created.
pub(crate) async fn creates(client: &Client, kind: Kind, day: &str) -> i32 {
    let stat = client
        .check_stat(&kind.directory(day))
        .await
        .expect("an answer")
        .expect("the directory is there");
    // The server counts creates and deletes, and shows twice the former less the children.
    (stat.cversion + stat.num_children) / 2
}

/// Waits until whoever is connected through a proxy has seen that it is not its turn, and waits
/// for the znode of this path to go.
pub(crate) async fn waits_in_earnest(kind: Kind, server: &Server, proxy: &Proxy, path: &str) {
    let lists = || proxy.counters().of(Operation::GetChildren).replies;
    let before = lists();
    eventually("it waits in earnest", || async {
        let watches = server.watches().await.expect("an answer");
        match kind.strategy {
            WaitStrategy::Predecessor => watches.contains_key(path),
            WaitStrategy::Parent => {
                // Those on children are counted, and not listed.
                let listed: usize = watches.values().map(BTreeSet::len).sum();
                let monitor = server.monitor().await.expect("an answer");
                monitor.watches > listed as u64
            }
            _ => lists() > before + 1,
        }
    })
    .await;
}

/// Waits until no contender and no watch is left on the server.
pub(crate) async fn assert_nothing_left(server: &Server, client: &Client, kind: Kind, day: &str) {
    assert_no_contender_left(client, kind, day).await;
    assert_no_watch_left(server).await;
}

pub(crate) async fn assert_no_contender_left(client: &Client, kind: Kind, day: &str) {
    eventually("no contender is left", || async {
        children(client, &kind.directory(day)).await.is_empty()
    })
    .await;
}

pub(crate) async fn assert_no_watch_left(server: &Server) {
    eventually("no watch is left", || async {
        server.monitor().await.expect("the server answers").watches == 0
    })
    .await;
}
