//! An ensemble in memory.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::{self, BoxStream, StreamExt};
use shuttle::sync::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, Connector, CreateMode, Created, Ensemble, Event, Exchange, Node,
    Operation, Outcome, Reply, ServerSession, SessionEnd, SessionId, Stat, TransactionError, Watch,
};
use zookeeper_recipes_core::{ConnectOptions, Identity, InvalidInput, Refusal, ServerError};

use crate::znodes::{Watched, Znodes};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The clock stands still.
const NOW: Duration = Duration::from_secs(1_000);

/// An ensemble in memory, in which no request of a queue fails. It does not know the others.
#[derive(Clone, Default)]
pub struct Server(Arc<Shared>);

#[derive(Default)]
struct Shared {
    znodes: Mutex<Znodes>,
    /// How many sessions were opened, and how many identities were drawn.
    drawn: Mutex<(i64, u128)>,
}

impl Server {
    /// Deletes a znode, as an operator does. False if it does not exist.
    pub fn delete(&self, path: &str) -> bool {
        self.with(|znodes| znodes.delete(path)).is_ok()
    }

    /// The names of the children of a znode. There are none if it does not exist.
    pub fn children(&self, path: &str) -> Vec<String> {
        let children = self.with(|znodes| znodes.children(path));
        children.unwrap_or_default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut Znodes) -> T) -> T {
        act(&mut self.0.znodes.lock().expect("no thread panics with it"))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Server")
    }
}

impl Ensemble for Server {
    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        for option in options.of_connections() {
            option.refuse("a server in memory")?;
        }
        Ok(self)
    }

    fn now(&self) -> Duration {
        NOW
    }

    fn address(&self) -> String {
        "memory".to_owned()
    }

    fn identity(&self) -> Identity {
        let mut drawn = self.0.drawn.lock().expect("no thread panics with it");
        drawn.1 += 1;
        Identity::from_random_bits(drawn.1)
    }
}

impl Connector for Server {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        let mut drawn = self.0.drawn.lock().expect("no thread panics with it");
        drawn.0 += 1;
        let (replies, mut sent) = mpsc::unbounded_channel::<Send>();
        tokio::spawn(async move {
            while let Some(send) = sent.recv().await {
                send();
            }
        });
        let session: Arc<dyn ServerSession> = Arc::new(OneSession {
            server: self.clone(),
            id: SessionId(drawn.0),
            replies,
            state: watch::Sender::new(ConnectionState::Connected),
        });
        ready(Ok(session)).boxed()
    }

    fn asked_timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }
}

/// Sends a reply.
type Send = Box<dyn FnOnce() + std::marker::Send>;

struct OneSession {
    server: Server,
    id: SessionId,
    /// A task sends the replies, one after the other.
    replies: mpsc::UnboundedSender<Send>,
    state: watch::Sender<ConnectionState>,
}

impl fmt::Debug for OneSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OneSession({})", self.id)
    }
}

impl OneSession {
    /// The reply to a request that is applied now.
    fn reply<T: std::marker::Send + 'static>(
        &self,
        act: impl FnOnce(&mut Znodes) -> Result<T, Refusal>,
    ) -> Reply<'static, T> {
        self.later(self.apply(act)).boxed()
    }

    /// Applies a request, unless the session is over. Its end is applied like a request.
    fn apply<T>(
        &self,
        act: impl FnOnce(&mut Znodes) -> Result<T, Refusal>,
    ) -> Result<T, ServerError> {
        self.server.with(|znodes| match self.is_over() {
            Some(over) => Err(over),
            None => act(znodes).map_err(ServerError::Refused),
        })
    }

    /// What the client gets once its turn has come among the replies.
    fn later<T: std::marker::Send + 'static>(
        &self,
        answer: T,
    ) -> impl Future<Output = T> + std::marker::Send + use<T> {
        let (to, answered) = oneshot::channel();
        // A caller that has gone wants no reply.
        let send = move || drop(to.send(answer));
        let is_sent = self.replies.send(Box::new(send)).is_ok();
        async move {
            assert!(is_sent, "the task runs as long as the session");
            answered.await.expect("the task sends each reply")
        }
    }

    fn is_over(&self) -> Option<ServerError> {
        match self.state() {
            ConnectionState::Ended(end) => Some(ServerError::SessionOver(end)),
            _ => None,
        }
    }

    /// A watch, which the end of the session resolves, too.
    fn event(&self, fired: oneshot::Receiver<Event>) -> Watch {
        let mut states = self.state.subscribe();
        async move {
            let ended = async move {
                loop {
                    if let ConnectionState::Ended(end) = *states.borrow_and_update() {
                        return Event::SessionEnded(end);
                    }
                    if states.changed().await.is_err() {
                        return Event::SessionEnded(SessionEnd::Closed);
                    }
                }
            };
            tokio::select! {
                biased;
                event = fired => event.unwrap_or(Event::Unwatched),
                end = ended => end,
            }
        }
        .boxed()
    }

    fn exchange(&self) -> Reply<'static, Exchange> {
        let exchange = Exchange {
            sent: NOW,
            answered: NOW,
            connection: self.connection(),
        };
        self.reply(|_| Ok(exchange))
    }
}

impl ServerSession for OneSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    fn state(&self) -> ConnectionState {
        *self.state.borrow()
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        let states = (self.state.subscribe(), None);
        stream::unfold(states, |(mut states, seen)| async move {
            if let Some(ConnectionState::Ended(_)) = seen {
                return None;
            }
            if seen.is_some() {
                states.changed().await.ok()?;
            }
            let state = *states.borrow_and_update();
            Some((state, (states, Some(state))))
        })
        .boxed()
    }

    fn connection(&self) -> Option<u64> {
        (self.state() == ConnectionState::Connected).then_some(1)
    }

    fn opened_over(&self) -> Option<u64> {
        Some(1)
    }

    fn limit_requests(&self, _: usize) {}

    fn orders_events(&self) -> bool {
        true
    }

    fn own_identity(&self) -> Option<AuthId> {
        None
    }

    fn close(&self) -> Option<Arc<dyn ServerSession>> {
        // If the session is over, nothing is left to do.
        let _ = self.apply(|znodes| {
            for path in znodes.of_session(self.id.0) {
                let _ = znodes.delete(&path);
            }
            let ended = ConnectionState::Ended(SessionEnd::Closed);
            self.state.send_replace(ended);
            Ok(())
        });
        None
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        _: &[Acl],
    ) -> Reply<'a, Created> {
        self.reply(|znodes| znodes.create(path, data, mode, self.id.0))
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        self.reply(|znodes| znodes.delete(path))
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        self.reply(|znodes| znodes.children(path))
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        self.reply(|znodes| {
            let children = znodes.children(path)?;
            let watch = znodes.watch(path, Watched::Children);
            Ok((children, self.event(watch)))
        })
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        self.reply(|znodes| znodes.get(path))
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        self.reply(|znodes| {
            let (data, stat) = znodes.get(path)?;
            let watch = znodes.watch(path, Watched::Znode);
            Ok((data, stat, self.event(watch)))
        })
    }

    fn exists_and_watch<'a>(&'a self, _: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        self.reply(|_| Err(Refusal::Unimplemented))
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        let deleted = operations.iter().map(|operation| match operation {
            Operation::Delete { path, .. } => Some(&**path),
            _ => None,
        });
        let error = |operation, error| TransactionError { operation, error };
        let missing = |place| error(Some(place), ServerError::Refused(Refusal::NoNode));
        let outcomes = self.apply(|znodes| {
            let paths = deleted.collect::<Option<Vec<_>>>();
            let paths = paths.ok_or(Refusal::Unimplemented)?;
            let all = znodes.delete_all(&paths).map_err(missing);
            Ok(all.map(|()| vec![Outcome::Deleted; paths.len()]))
        });
        let outcomes = outcomes.unwrap_or_else(|refused| Err(error(None, refused)));
        self.later(outcomes).boxed()
    }

    fn get_each<'a>(&'a self, _: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        self.reply(|_| Err(Refusal::Unimplemented))
    }

    fn sync<'a>(&'a self, _: &'a str) -> Reply<'a, Exchange> {
        self.exchange()
    }

    fn commit_noop(&self) -> Reply<'_, Exchange> {
        self.exchange()
    }
}
