//! Counts the requests and the notifications of a session, between the recipes and the client.
//!
//! A meter knows more than a [`proxy`](crate::proxy): which requests have no answer yet, which
//! watches are set, and whether a notification comes from another session. So a test can wait until
//! a waiter waits. A meter does not count bytes.
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use zookeeper_recipes_core::{ConnectOptions, Session, ZookeeperEnsemble};
//! use zookeeper_recipes_testkit::meter::{Meter, MeteredEnsemble};
//! use zookeeper_recipes_testkit::{Server, ServerOptions};
//!
//! let server = Server::start(ServerOptions::new()).await?;
//! let ensemble = ZookeeperEnsemble::new(&server.connect_string())?;
//! let meter = Meter::default();
//! let ensemble = MeteredEnsemble::new(Arc::new(ensemble), meter.clone());
//! let session = Session::open(Arc::new(ensemble), ConnectOptions::new()).await?;
//!
//! let before = meter.read();
//! session.server(&"/locks".parse()?).await?.list("/").await?;
//! // The session's own probes are among them.
//! assert!(meter.read().requests > before.requests);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, Connector, CreateMode, Created, Ensemble, Event, Exchange,
    Operation, Outcome, Reply, ServerSession, SessionId, Stat, TransactionError, Watch,
};
use zookeeper_recipes_core::{ConnectOptions, Identity, InvalidInput, ServerError};

/// The counts of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests, including the requests that remove a watch.
    ///
    /// The number does not count the probes and pings that the session sends by itself.
    pub requests: u64,
    /// Requests and probes without an answer yet.
    pub unanswered: u64,
    /// Every `sync` of the root. The session sends one by itself in each tenth of its timeout, or
    /// more often.
    pub probes: u64,
    /// Watches that are set, and have not fired.
    pub watches: u64,
    /// Watches that have ever been set.
    pub watches_set: u64,
    /// Notifications of an event that another session caused.
    pub wake_ups: u64,
    /// Notifications that a znode of this session was deleted.
    ///
    /// A waiter sets such a loss watch, and still has it when it holds and releases.
    pub own: u64,
}

impl Counts {
    /// All notifications.
    pub fn told(&self) -> u64 {
        self.wake_ups + self.own
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Counts) -> Counts {
        Counts {
            requests: self.requests + other.requests,
            unanswered: self.unanswered + other.unanswered,
            probes: self.probes + other.probes,
            watches: self.watches + other.watches,
            watches_set: self.watches_set + other.watches_set,
            wake_ups: self.wake_ups + other.wake_ups,
            own: self.own + other.own,
        }
    }
}

/// Counts for one session, or for several sessions together. The clones are one meter.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    counts: Arc<watch::Sender<Counts>>,
}

impl Meter {
    /// The counts until now.
    pub fn read(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Waits until `are_such` accepts the counts.
    ///
    /// The call waits for ever if it never does.
    pub async fn when(&self, are_such: impl FnMut(&Counts) -> bool) -> Counts {
        let mut counts = self.counts.subscribe();
        let counts = counts.wait_for(are_such).await.map(|counts| *counts);
        match counts {
            Ok(counts) => counts,
            // The sender is our own.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes note of a request that has just been sent, until its answer has come.
    fn asked(&self) -> Asked {
        self.counts.send_modify(|counts| {
            counts.requests += 1;
            counts.unanswered += 1;
        });
        Asked(self.clone())
    }

    fn probed(&self) -> Asked {
        self.counts.send_modify(|counts| {
            counts.probes += 1;
            counts.unanswered += 1;
        });
        Asked(self.clone())
    }

    fn watch(&self, watch: Watch, on_own_node: bool) -> Watch {
        self.counts.send_modify(|counts| {
            counts.watches += 1;
            counts.watches_set += 1;
        });
        let mut set = Set {
            meter: self.clone(),
            told: false,
        };
        Box::pin(async move {
            let event = watch.await;
            set.tells(event, on_own_node);
            event
        })
    }
}

struct Asked(Meter);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.unanswered -= 1);
    }
}

/// A watch that is set.
struct Set {
    meter: Meter,
    told: bool,
}

impl Set {
    fn tells(&mut self, event: Event, on_own_node: bool) {
        self.told = true;
        self.meter.counts.send_modify(|counts| {
            counts.watches -= 1;
            match (event, on_own_node) {
                (Event::SessionEnded(_), _) => {}
                (_, true) => counts.own += 1,
                (_, false) => counts.wake_ups += 1,
            }
        });
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        if !self.told {
            self.meter.counts.send_modify(|counts| {
                counts.watches -= 1;
                // It is taken off the server.
                counts.requests += 1;
            });
        }
    }
}

/// An ensemble whose sessions are counted, all by one meter.
#[derive(Debug)]
pub struct MeteredEnsemble {
    ensemble: Arc<dyn Ensemble>,
    meter: Meter,
}

impl MeteredEnsemble {
    /// This ensemble, with its sessions counted.
    pub fn new(ensemble: Arc<dyn Ensemble>, meter: Meter) -> MeteredEnsemble {
        MeteredEnsemble { ensemble, meter }
    }
}

impl Ensemble for MeteredEnsemble {
    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        Ok(Arc::new(MeteredConnector {
            connector: self.ensemble.clone().connector(options)?,
            meter: self.meter.clone(),
        }))
    }

    fn now(&self) -> Duration {
        self.ensemble.now()
    }

    fn address(&self) -> String {
        self.ensemble.address()
    }

    fn servers(&self) -> Vec<String> {
        self.ensemble.servers()
    }

    fn chroot(&self) -> &str {
        self.ensemble.chroot()
    }

    fn identity(&self) -> Identity {
        self.ensemble.identity()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        self.ensemble.task(work)
    }
}

#[derive(Debug)]
struct MeteredConnector {
    connector: Arc<dyn Connector>,
    meter: Meter,
}

impl Connector for MeteredConnector {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        Box::pin(async move {
            let server = self.connector.connect().await?;
            let meter = self.meter.clone();
            Ok(Arc::new(MeteredSession { server, meter }) as Arc<dyn ServerSession>)
        })
    }

    fn asked_timeout(&self) -> Option<Duration> {
        self.connector.asked_timeout()
    }

    fn obstacle(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        self.connector.obstacle()
    }
}

#[derive(Debug)]
struct MeteredSession {
    server: Arc<dyn ServerSession>,
    meter: Meter,
}

impl MeteredSession {
    /// Requests are sent when they are called, so that they are counted then and not when polled.
    fn asked<'a, T: 'a>(&self, answer: BoxFuture<'a, T>) -> BoxFuture<'a, T> {
        until_answered(self.meter.asked(), answer)
    }
}

fn until_answered<'a, T: 'a>(asked: Asked, answer: BoxFuture<'a, T>) -> BoxFuture<'a, T> {
    Box::pin(async move {
        let answer = answer.await;
        drop(asked);
        answer
    })
}

impl ServerSession for MeteredSession {
    fn id(&self) -> SessionId {
        self.server.id()
    }

    fn timeout(&self) -> Duration {
        self.server.timeout()
    }

    fn state(&self) -> ConnectionState {
        self.server.state()
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        self.server.states()
    }

    fn connection(&self) -> Option<u64> {
        self.server.connection()
    }

    fn opened_over(&self) -> Option<u64> {
        self.server.opened_over()
    }

    fn limit_requests(&self, bytes: usize) {
        self.server.limit_requests(bytes);
    }

    fn leave_server(&self) {
        self.server.leave_server();
    }

    fn orders_events(&self) -> bool {
        self.server.orders_events()
    }

    fn own_identity(&self) -> Option<AuthId> {
        self.server.own_identity()
    }

    fn close(&self) -> Option<Arc<dyn ServerSession>> {
        let server = self.server.close()?;
        let meter = self.meter.clone();
        Some(Arc::new(MeteredSession { server, meter }))
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        self.asked(self.server.create(path, data, mode, acl))
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        self.asked(self.server.delete(path))
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        self.asked(self.server.list(path))
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        let meter = self.meter.clone();
        let answer = self.server.list_and_watch(path);
        self.asked(Box::pin(async move {
            let (names, watch) = answer.await?;
            Ok((names, meter.watch(watch, false)))
        }))
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat)> {
        self.asked(self.server.get(path))
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        let (meter, id) = (self.meter.clone(), self.id());
        let answer = self.server.get_and_watch(path);
        self.asked(Box::pin(async move {
            let (data, stat, watch) = answer.await?;
            let own = stat.ephemeral_owner == id.0;
            Ok((data, stat, meter.watch(watch, own)))
        }))
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        let (meter, id) = (self.meter.clone(), self.id());
        let answer = self.server.exists_and_watch(path);
        self.asked(Box::pin(async move {
            let (stat, watch) = answer.await?;
            let own = stat.is_some_and(|stat| stat.ephemeral_owner == id.0);
            Ok((stat, meter.watch(watch, own)))
        }))
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        self.asked(self.server.transact(operations))
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<(Vec<u8>, Stat)>>> {
        self.asked(self.server.get_each(paths))
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, Exchange> {
        // A recipe makes the server catch up on a path of its own, never on the root.
        let asked = match path {
            "/" => self.meter.probed(),
            _ => self.meter.asked(),
        };
        until_answered(asked, self.server.sync(path))
    }

    fn commit_noop(&self) -> Reply<'_, Exchange> {
        until_answered(self.meter.probed(), self.server.commit_noop())
    }
}
