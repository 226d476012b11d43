//! An ensemble in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FutureExt, ready};
use shuttle::sync::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use zookeeper_recipes_connection::{Connecting, Host, Network};
use zookeeper_recipes_core::ensemble::{
    Answer, ConnectionState, EnsembleFacts, Exchange, Operation, Outcome, RawReply, RequestBody,
    RequestError, Scope, ServerSession, SessionEnd, SessionId, Watch, WatchEvent, boxed_reply,
};
use zookeeper_recipes_core::{ConnectOptions, Environment, InvalidInput};
use zookeeper_recipes_protocol::{ErrorCode, Reply, ReplyBody};

use crate::fake::{FakeEnsemble, FakeSession, Open};
use crate::znodes::{Watched, Znodes};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The clock stands still.
const NOW: Duration = Duration::from_secs(1_000);

/// An ensemble in memory, in which no request of a queue fails. It does not know the others.
#[derive(Clone, Default)]
pub struct Server {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    znodes: Mutex<Znodes>,
    /// How many sessions were opened.
    opened: Mutex<i64>,
}

/// A clock that stands still, and random numbers that count.
#[derive(Debug, Default)]
struct Counted(Mutex<u128>);

impl Network for Counted {
    fn connect(&self, _: &Host, _: SocketAddr, _: Duration) -> Connecting {
        unreachable!("it opens no connection")
    }

    fn now(&self) -> Duration {
        NOW
    }
}

impl Environment for Counted {
    fn network(&self, _: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput> {
        unreachable!("it opens no connection")
    }

    fn random(&self) -> u128 {
        let mut drawn = self.0.lock().expect("no thread panics with it");
        *drawn += 1;
        *drawn
    }
}

impl Server {
    /// The ensemble of this server, as core sees it.
    pub fn ensemble(&self) -> Arc<FakeEnsemble> {
        let server = self.clone();
        Arc::new(FakeEnsemble {
            facts: EnsembleFacts {
                session_timeout: Some(TIMEOUT),
                environment: Arc::new(Counted::default()),
                ..EnsembleFacts::new("memory")
            },
            connector: Box::new(move |_| {
                let server = server.clone();
                let open: Open = Box::new(move || ready(Ok(server.open())).boxed());
                Ok(open)
            }),
        })
    }

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
        act(&mut self.shared.znodes.lock().expect("no thread panics with it"))
    }

    fn open(&self) -> ServerSession {
        let mut opened = self.shared.opened.lock().expect("no thread panics with it");
        *opened += 1;
        let (replies, mut sent) = mpsc::unbounded_channel::<Send>();
        tokio::spawn(async move {
            while let Some(send) = sent.recv().await {
                send();
            }
        });
        let connected = ConnectionState::Connected {
            session_id: *opened,
            timeout: TIMEOUT,
            connection: 1,
        };
        let session = Arc::new(OneSession {
            server: self.clone(),
            id: *opened,
            replies,
            state: watch::Sender::new(connected),
        });
        let (sends, closes) = (session.clone(), session.clone());
        let raw = FakeSession {
            send: Box::new(move |request| sends.send(request)),
            watch_tree: None,
            orders_events: true,
            leave_server: Box::new(|| ()),
            close: Box::new(move || closes.close()),
        };
        ServerSession {
            raw: Arc::new(raw),
            connection_states: session.state.subscribe(),
            id: SessionId(*opened),
            timeout: TIMEOUT,
            opened_over: Some(1),
            own_identity: None,
            scope: Scope::new("/", usize::MAX, true),
            left_open: None,
        }
    }
}

/// Sends a reply.
type Send = Box<dyn FnOnce() + std::marker::Send>;

struct OneSession {
    server: Server,
    id: i64,
    /// A task sends the replies, one after the other.
    replies: mpsc::UnboundedSender<Send>,
    state: watch::Sender<ConnectionState>,
}

type Applied = Result<(ReplyBody, Option<Watch>), ErrorCode>;

impl OneSession {
    /// Applies a request, unless the session is over. Its end is applied like a request.
    fn apply(&self, act: impl FnOnce(&mut Znodes) -> Applied) -> Result<Applied, RequestError> {
        self.server.with(|znodes| {
            // The end is published while it is applied, so nothing may borrow the state then.
            let state = *self.state.borrow();
            match state {
                ConnectionState::Ended(end) => Err(RequestError::Ended(end)),
                _ => Ok(act(znodes)),
            }
        })
    }

    fn applied(&self, znodes: &mut Znodes, request: RequestBody) -> Applied {
        let body = match request {
            RequestBody::Create2(create) | RequestBody::CreateContainer(create) => {
                let data = create.data.unwrap_or_default();
                let created = znodes.create(&create.path, &data, create.mode, self.id)?;
                let (path, stat) = (created.path, created.stat);
                ReplyBody::Create2 { path, stat }
            }
            RequestBody::Delete(delete) => {
                znodes.delete(&delete.path)?;
                ReplyBody::Empty
            }
            RequestBody::GetChildren(read) => {
                let children = znodes.children(&read.path)?;
                let watch = || self.event(znodes.watch(&read.path, Watched::Children));
                let watch = read.watch.then(watch);
                return Ok((ReplyBody::Children { children }, watch));
            }
            RequestBody::GetData(read) => {
                let (data, stat) = znodes.get(&read.path)?;
                let watch = || self.event(znodes.watch(&read.path, Watched::Znode));
                let (data, watch) = (Some(data), read.watch.then(watch));
                return Ok((ReplyBody::Data { data, stat }, watch));
            }
            RequestBody::Multi(operations) => ReplyBody::Multi(transacted(znodes, &operations)?),
            RequestBody::Sync(sync) => ReplyBody::Sync { path: sync.path },
            _ => return Err(ErrorCode::Unimplemented),
        };
        Ok((body, None))
    }

    fn send(&self, request: RequestBody) -> RawReply {
        let applied = self.apply(|znodes| self.applied(znodes, request));
        let answer = applied.map(|applied| {
            let (reply, watch) = match applied {
                Ok((body, watch)) => (Reply::new(1, 1, body), watch),
                Err(code) => (Reply::failed(1, 1, code), None),
            };
            let exchange = Exchange {
                sent: NOW,
                answered: NOW,
                connection: Some(1),
            };
            (Answer { reply, exchange }, watch)
        });
        boxed_reply(self.later(answer))
    }

    fn close(&self) {
        // If the session is over, nothing is left to do.
        let _ = self.apply(|znodes| {
            for path in znodes.of_session(self.id) {
                let _ = znodes.delete(&path);
            }
            let ended = ConnectionState::Ended(SessionEnd::Closed);
            self.state.send_replace(ended);
            Ok((ReplyBody::Empty, None))
        });
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

    /// A watch, which the end of the session resolves, too.
    fn event(&self, fired: oneshot::Receiver<WatchEvent>) -> Watch {
        let mut states = self.state.subscribe();
        async move {
            let ended = states.wait_for(|state| matches!(state, ConnectionState::Ended(_)));
            tokio::select! {
                biased;
                event = fired => event.unwrap_or(WatchEvent::Unwatched),
                _ = ended => WatchEvent::Unwatched,
            }
        }
        .boxed()
    }
}

/// Applies a proof, or deletions.
fn transacted(znodes: &mut Znodes, operations: &[Operation]) -> Result<Vec<Outcome>, ErrorCode> {
    if let [Operation::Check(_)] = operations {
        return Ok(vec![Outcome::Check]);
    }
    let deleted = operations.iter().map(|operation| match operation {
        Operation::Delete(delete) => Some(&*delete.path),
        _ => None,
    });
    let paths = deleted.collect::<Option<Vec<_>>>();
    let paths = paths.ok_or(ErrorCode::Unimplemented)?;
    Ok(match znodes.delete_all(&paths) {
        Ok(()) => vec![Outcome::Delete; paths.len()],
        Err(missing) => Outcome::failed(paths.len(), missing, ErrorCode::NoNode),
    })
}
