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
//! use zookeeper_recipes_testkit::meter::Meter;
//! use zookeeper_recipes_testkit::{Server, ServerOptions};
//!
//! let server = Server::start(ServerOptions::new()).await?;
//! let ensemble = ZookeeperEnsemble::new(&server.connect_string())?;
//! let meter = Meter::default();
//! let ensemble = meter.around(Arc::new(ensemble));
//! let session = Session::open(ensemble, ConnectOptions::new()).await?;
//!
//! let before = meter.read();
//! session.server(&"/locks".parse()?).await?.list("/").await?;
//! // The session's own probes are among them.
//! assert!(meter.read().requests > before.requests);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::{
    Ensemble, Operation, RawReply, RequestBody, SessionId, Watch, WatchEvent, boxed_reply,
};
use zookeeper_recipes_protocol::ReplyBody;

use crate::altered::{altered, passing};
use crate::fake::FakeSession;

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
    /// The call never returns if that never happens.
    pub async fn when(&self, are_such: impl FnMut(&Counts) -> bool) -> Counts {
        let mut counts = self.counts.subscribe();
        let counts = counts.wait_for(are_such).await.map(|counts| *counts);
        match counts {
            Ok(counts) => counts,
            // The sender is our own.
            Err(_) => std::future::pending().await,
        }
    }

    /// This ensemble, with its sessions counted.
    pub fn around(&self, ensemble: Arc<dyn Ensemble>) -> Arc<dyn Ensemble> {
        let (meter, root) = (self.clone(), ensemble.facts().chroot.clone());
        Arc::new(altered(ensemble, move |id, raw| {
            let (meter, root, below) = (meter.clone(), root.clone(), raw.clone());
            let (watched, trees) = (meter.clone(), raw.clone());
            FakeSession {
                watch_tree: Some(Box::new(move |path| {
                    watched.counts.send_modify(|counts| counts.requests += 1);
                    trees.watch_tree(path)
                })),
                send: Box::new(move |request| {
                    // The call sends the request, so that it is counted then and not when it is
                    // polled.
                    let asked = meter.asked(is_probe(&request, &root));
                    meter.watched(id, asked, below.send(request))
                }),
                ..passing(raw)
            }
        }))
    }

    /// Takes note of a request that has just been sent, until its answer has come.
    fn asked(&self, is_probe: bool) -> Asked {
        self.counts.send_modify(|counts| {
            let sent = match is_probe {
                true => &mut counts.probes,
                false => &mut counts.requests,
            };
            *sent += 1;
            counts.unanswered += 1;
        });
        Asked(self.clone())
    }

    /// The reply to a request of this session, with its watch counted.
    fn watched(&self, id: SessionId, asked: Asked, reply: RawReply) -> RawReply {
        boxed_reply(async move {
            let (answer, watch) = reply.await?;
            let on_own_node = match &answer.reply.body {
                ReplyBody::Data { stat, .. } | ReplyBody::Stat(stat) => {
                    stat.ephemeral_owner == id.0
                }
                _ => false,
            };
            let watch = watch.map(|watch| asked.0.watch(watch, on_own_node));
            Ok((answer, watch))
        })
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
    fn tells(&mut self, event: WatchEvent, on_own_node: bool) {
        self.told = true;
        self.meter.counts.send_modify(|counts| {
            counts.watches -= 1;
            match (event, on_own_node) {
                (WatchEvent::Unwatched, _) => {}
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

/// True for what the session sends by itself.
///
/// A recipe makes the server catch up on a path of its own, never on the root.
fn is_probe(request: &RequestBody, root: &str) -> bool {
    match request {
        RequestBody::Sync(sync) => sync.path == root,
        RequestBody::Multi(operations) => match &operations[..] {
            [Operation::Check(check)] => check.path == root,
            _ => false,
        },
        _ => false,
    }
}
