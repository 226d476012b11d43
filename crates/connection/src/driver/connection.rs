//! The handle of a session: sends requests, and reports the state.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::{oneshot, watch};
use zookeeper_recipes_protocol::RequestBody;

use crate::driver::network::Network;
use crate::driver::shared::{Inner, Shared};
use crate::driver::task::Driver;
use crate::error::{RequestError, SessionEnd};
use crate::session::host::Host;
use crate::session::machine::{Config, Machine};
use crate::session::obstacle::Obstacle;
use crate::session::output::{Answer, ConnectionState};
use crate::session::trees::TreeEvent;
use crate::session::watches::{WatchEvent, WatchId, WatchedRead};
use crate::sync::Mutex;

/// One ZooKeeper session. If the handle is dropped, the session is closed.
pub struct Connection {
    shared: Arc<Shared>,
}

impl Connection {
    /// A session over this network, and the driver that has to run for it to do anything.
    ///
    /// Spawn the driver on the runtime that the connections belong to. It ends with the session.
    /// If it is dropped before, the session ends on this side with [`SessionEnd::Closed`].
    pub fn new(network: Arc<dyn Network>, config: Config) -> (Connection, Driver) {
        let (now, hosts) = (network.now(), config.hosts.clone());
        let mut machine = Machine::new(now, config);
        for host in &hosts {
            machine.remember(now, host, &network.known(host));
        }
        let shared = Arc::new(Shared {
            state: watch::Sender::new(machine.disconnected()),
            inner: Mutex::new(Inner {
                machine,
                driver: None,
                is_left: false,
            }),
            network,
        });
        let driver = Driver::new(shared.clone());
        (Connection { shared }, driver)
    }

    /// Refuses from now on each request that the servers may refuse by this `jute.maxbuffer`.
    ///
    /// A server closes the connection at such a request. It is answered with
    /// [`RequestError::RequestTooLong`], and is not sent. Before the first call there is no limit.
    pub fn limit_requests(&self, bytes: usize) {
        self.shared
            .input(|machine, _| machine.limit_requests(bytes));
    }

    /// Sends a request when it is called. The future waits for the answer.
    ///
    /// The server gets the requests of a session in the order of the calls. Without a connection
    /// the request waits for the next one. `getData`, `exists` and `getChildren` with `watch` come
    /// back with their watch, unless the read has set none.
    ///
    /// # Cancel safety
    ///
    /// A dropped future takes a read or a `sync` back if it is not sent yet. A write is sent all the
    /// same. If a read that was sent sets a watch, the watch is removed.
    pub fn request(&self, body: RequestBody) -> PendingAnswer {
        let (to, reply) = oneshot::channel();
        let (read, path) = match body {
            RequestBody::GetData(read) if read.watch => (WatchedRead::Data, read.path),
            RequestBody::Exists(read) if read.watch => (WatchedRead::Exists, read.path),
            RequestBody::GetChildren(read) if read.watch => (WatchedRead::Children, read.path),
            body => {
                self.shared
                    .input(|machine, now| machine.request(now, body, to));
                return PendingAnswer { reply, watch: None };
            }
        };
        let (fired, event) = oneshot::channel();
        let watch = Watch {
            id: self
                .shared
                .input(|machine, now| machine.watch(now, read, path, to, fired)),
            read,
            shared: self.shared.clone(),
            event: Some(event),
        };
        let watch = Some(Box::new(watch));
        PendingAnswer { reply, watch }
    }

    /// Watches a znode and all znodes below it. The znode need not exist. The request is sent when
    /// this is called.
    ///
    /// The first event is a [`TreeEvent::Missed`], once a server has set the watch. ZooKeeper has
    /// such watches since 3.6. On other servers the first thing to come is
    /// [`RequestError::Unsupported`] or [`RequestError::Refused`], at the cost of one connection.
    /// Further calls cost nothing for ten minutes.
    pub fn watch_tree(&self, path: &str) -> TreeEvents {
        TreeEvents {
            id: self
                .shared
                .input(|machine, now| machine.watch_tree(now, path)),
            shared: self.shared.clone(),
        }
    }

    /// The state of the session.
    pub fn state(&self) -> ConnectionState {
        *self.shared.state.borrow()
    }

    /// The state of the session and its changes. The receiver does not keep the session open.
    ///
    /// It is also marked as changed each time that a host was tried in vain.
    pub fn states(&self) -> watch::Receiver<ConnectionState> {
        self.shared.state.subscribe()
    }

    /// The number of the first connection over which a server has confirmed the session.
    ///
    /// `None` before that. If the connection of the first [`ConnectionState::Connected`] has another number,
    /// the session has reconnected before.
    pub fn opened_over(&self) -> Option<u64> {
        self.shared.lock().machine.opened_over
    }

    /// Why there is no session at each host, or not yet. A host that was not tried is left out.
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let now = self.shared.network.now();
        self.shared.lock().machine.obstacles(now)
    }

    /// Leaves the present server for another address, if one is known. The session continues there.
    ///
    /// The requests without a reply have an unknown outcome, as after any break.
    pub fn leave_server(&self) {
        self.shared.input(Machine::leave_server);
    }

    /// Replaces the hosts.
    ///
    /// A session that is connected to a host that stays listed keeps its connection. Any other one
    /// [leaves its server](Self::leave_server) as soon as an address of the new hosts is known. Until
    /// then the names are looked up again and again.
    pub fn set_hosts(&self, hosts: &[Host]) {
        let known: Vec<_> = hosts
            .iter()
            .map(|it| self.shared.network.known(it))
            .collect();
        // In one input: what a look-up learns meanwhile is newer.
        self.shared.input(|machine, now| {
            machine.set_hosts(now, hosts);
            for (host, addresses) in hosts.iter().zip(&known) {
                machine.remember(now, host, addresses);
            }
        });
    }

    /// Closes the session, after the requests that were asked before. Later requests are not sent.
    ///
    /// The [state](Self::state) is [`ConnectionState::Ended`] once a server has confirmed the close or T has
    /// passed. A session that is over stays as it is.
    pub fn begin_close(&self) {
        self.shared.input(Machine::close);
    }

    /// [Closes](Self::begin_close) the session, and waits for the end.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the close continues in the driver.
    pub async fn close(&self) -> SessionEnd {
        self.begin_close();
        let mut states = self.states();
        let ended = states.wait_for(|state| matches!(state, ConnectionState::Ended(_)));
        match ended.await.as_deref() {
            Ok(ConnectionState::Ended(end)) => *end,
            _ => SessionEnd::Closed,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.begin_close();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Connection({:?})", self.state())
    }
}

/// The answer to a request that was sent, and the watch that the request has set.
#[derive(Debug)]
pub struct PendingAnswer {
    reply: oneshot::Receiver<Result<Answer, RequestError>>,
    /// In a box, because most requests set no watch.
    watch: Option<Box<Watch>>,
}

impl Future for PendingAnswer {
    type Output = Result<(Answer, Option<Box<Watch>>), RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match ready!(Pin::new(&mut self.reply).poll(context)) {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Poll::Ready(Err(error)),
            // The driver answers each request before it goes.
            Err(_) => return Poll::Ready(Err(RequestError::Ended(SessionEnd::Closed))),
        };
        let error = answer.reply.header.error;
        let watch = self.watch.take();
        let watch = watch.filter(|watch| watch.read.sets_watch(error));
        Poll::Ready(Ok((answer, watch)))
    }
}

/// A watch on the server. It resolves once, with its event.
///
/// # Cancel safety
///
/// If the watch is dropped before it resolves, it is removed from the server, unless another watch
/// of the session needs it. That is one request, and the drop does not wait for the reply.
pub struct Watch {
    shared: Arc<Shared>,
    id: WatchId,
    /// The read that sets it.
    read: WatchedRead,
    /// `None` once the event has come.
    event: Option<oneshot::Receiver<WatchEvent>>,
}

impl Future for Watch {
    type Output = WatchEvent;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<WatchEvent> {
        let Some(event) = &mut self.event else {
            return Poll::Ready(WatchEvent::Unwatched);
        };
        let event = ready!(Pin::new(event).poll(context));
        self.event = None;
        Poll::Ready(event.unwrap_or(WatchEvent::Unwatched))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.event.is_some() {
            self.shared
                .input(|machine, now| machine.unwatch(now, &self.id));
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Watch({:?})", self.id.path)
    }
}

/// A watch of a znode and all znodes below it, which stays until it is dropped.
///
/// It survives reconnects: each is a [`TreeEvent::Missed`]. If more than 1 MiB of events wait, they
/// give way to one [`TreeEvent::Missed`]. Nothing is reported of a znode that the session may not
/// read, by servers since 3.8.4 and 3.9.2.
///
/// If the watch is dropped, it is removed from the server, unless another watch of the session needs
/// it. That is one request, and the drop does not wait for the reply.
pub struct TreeEvents {
    shared: Arc<Shared>,
    id: WatchId,
}

impl TreeEvents {
    /// The next event. It waits until there is one.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no event is lost.
    ///
    /// # Errors
    ///
    /// There will be no further event: the session is over, or the server refuses the watch.
    pub async fn next(&mut self) -> Result<TreeEvent, RequestError> {
        poll_fn(|context| {
            let mut inner = self.shared.lock();
            inner.machine.poll_tree(&self.id, context)
        })
        .await
    }
}

impl Drop for TreeEvents {
    fn drop(&mut self) {
        self.shared
            .input(|machine, now| machine.unwatch_tree(now, &self.id));
    }
}

impl fmt::Debug for TreeEvents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TreeEvents({:?})", self.id.path)
    }
}
