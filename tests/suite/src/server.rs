//! Real servers: sessions on them, and what is left on them.

use std::time::Duration;

use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_core::{ConnectOptions, Recipe, Session};
use zookeeper_recipes_testkit::proxy::Proxy;
use zookeeper_recipes_testkit::{Ensemble, Monitor, Server, ServerOptions};

use crate::waiting::{PATIENCE, eventually};

/// The tick of the servers, unless a test sets another.
pub const TICK: Duration = Duration::from_millis(500);
/// A session timeout for tests that wait for a session's expiry.
pub const SHORT: Duration = Duration::from_secs(3);
/// A session timeout for tests in which no session may expire, however busy the machine.
pub const LONG: Duration = Duration::from_secs(20);
/// A session timeout for tests that count what a session sends: it says nothing by itself as long
/// as a test runs.
pub const QUIET: Duration = Duration::from_secs(60);
/// How much later than it should something may come on a busy machine.
pub const LATE: Duration = Duration::from_secs(15);

/// What sessions and clients can connect to.
pub trait Address {
    fn address(&self) -> String;
}

impl Address for str {
    fn address(&self) -> String {
        self.to_owned()
    }
}

impl Address for String {
    fn address(&self) -> String {
        self.clone()
    }
}

macro_rules! addresses {
    ($($server:ty),+) => {
        $(
            impl Address for $server {
                fn address(&self) -> String {
                    self.connect_string()
                }
            }
        )+
    };
}

addresses!(Server, Ensemble, Proxy);

pub async fn server() -> Server {
    server_with(ServerOptions::new().tick_time(TICK)).await
}

pub async fn server_with(options: ServerOptions) -> Server {
    Server::start(options).await.expect("a server starts")
}

pub async fn proxy(server: &(impl Address + ?Sized)) -> Proxy {
    Proxy::start(server.address())
        .await
        .expect("a proxy starts")
}

pub async fn session(at: &(impl Address + ?Sized), timeout: Duration) -> Session {
    session_with_tick(at, timeout, TICK).await
}

pub async fn session_with_tick(
    at: &(impl Address + ?Sized),
    timeout: Duration,
    tick: Duration,
) -> Session {
    let options = ConnectOptions::new()
        .session_timeout(timeout)
        .connection_timeout(PATIENCE)
        .tick(tick);
    Session::connect_with(&at.address(), options)
        .await
        .expect("a session opens")
}

/// A client beside the sessions under test, for what administrators and others do.
pub async fn administrator(at: &(impl Address + ?Sized)) -> Client {
    Client::connector()
        .with_session_timeout(LONG)
        .connect(&at.address())
        .await
        .expect("a client connects")
}

/// Creates a persistent znode without data.
pub async fn create(client: &Client, path: &str) {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client
        .create(path, b"", &options)
        .await
        .expect("a znode can be created");
}

pub async fn exists(client: &Client, path: &str) -> bool {
    let stat = client.check_stat(path).await;
    stat.expect("the server answers").is_some()
}

/// The names of a znode's children; none if there is no such znode.
pub async fn children(client: &Client, path: &str) -> Vec<String> {
    match client.list_children(path).await {
        Err(zookeeper_client::Error::NoNode) => Vec::new(),
        children => children.expect("the children can be listed"),
    }
}

/// How many watches have fired so far.
pub async fn notifications(server: &Server) -> u64 {
    let monitor = server.monitor().await.expect("the server answers");
    let notifications = monitor.notifications();
    notifications.expect("a server of 3.6 or newer counts them")
}

pub async fn watchers(server: &Server, path: &str) -> Vec<i64> {
    let watches = server.watches().await.expect("the server answers");
    watches.get(path).into_iter().flatten().copied().collect()
}

/// Waits until so many contenders are in the queue, by the view of this recipe's session.
pub async fn queue_length(recipe: &dyn Recipe, length: usize) {
    eventually("the contenders have queued", async || {
        let contenders = recipe.contenders().await.expect("the queue can be read");
        contenders.len() == length
    })
    .await;
}

/// Waits until no ephemeral znode and no watch is left on the server.
pub async fn assert_nothing_left(server: &Server) {
    eventually("no ephemeral znode is left", async || {
        let ephemerals = server.ephemerals().await;
        ephemerals.expect("the server answers").is_empty()
    })
    .await;
    assert_no_watch_left(server).await;
}

/// Waits until a directory is empty and no watch is left on the server.
pub async fn assert_nothing_left_in(
    server: &(impl Address + ?Sized),
    client: &Client,
    directory: &str,
) {
    assert_directory_empty(client, directory).await;
    assert_no_watch_left(server).await;
}

/// Waits until no contender is left in a directory.
pub async fn assert_directory_empty(client: &Client, directory: &str) {
    let what = format!("{directory} is empty");
    eventually(&what, async || children(client, directory).await.is_empty()).await;
}

pub async fn assert_no_watch_left(server: &(impl Address + ?Sized)) {
    let address = server.address();
    eventually("no watch is left", async || {
        let monitor = Monitor::read(&address).await;
        monitor.expect("the server answers").watches == 0
    })
    .await;
}
