//! An ensemble that calls a test before it sends a transaction, and can be blind.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::BoxStream;
use zookeeper_recipes_core::ServerError;
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Created, Ensemble, Node, Operation, Outcome, Reply,
    ServerSession, SessionId, Stat, TransactionError, Watch,
};

type Function = Box<dyn FnOnce() + Send>;

/// Called once, before the next transaction is sent, as if the sending thread stood still.
#[derive(Clone, Default)]
pub(crate) struct Call(Arc<Mutex<Option<Function>>>);

impl Call {
    pub(crate) fn set(&self, call: impl FnOnce() + Send + 'static) {
        *self.0.lock().expect("no panic") = Some(Box::new(call));
    }

    fn make(&self) {
        let call = self.0.lock().expect("no panic").take();
        if let Some(call) = call {
            call();
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Call")
    }
}

#[derive(Debug)]
pub(crate) struct BeforeTransaction {
    pub(crate) ensemble: Arc<dyn Ensemble>,
    pub(crate) call: Call,
    /// True if no event of the session's own znodes comes, and the session says so.
    pub(crate) is_blind: bool,
}

impl Ensemble for BeforeTransaction {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        async {
            let server = self.ensemble.connect().await?;
            Ok(Arc::new(Sending {
                server,
                call: self.call.clone(),
                is_blind: self.is_blind,
            }) as Arc<dyn ServerSession>)
        }
        .boxed()
    }

    fn now(&self) -> Duration {
        self.ensemble.now()
    }

    fn address(&self) -> String {
        self.ensemble.address()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        self.ensemble.task(work)
    }
}

#[derive(Debug)]
struct Sending {
    server: Arc<dyn ServerSession>,
    call: Call,
    is_blind: bool,
}

impl ServerSession for Sending {
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

    fn disconnected(&self) -> BoxFuture<'static, ()> {
        self.server.disconnected()
    }

    fn orders_events(&self) -> bool {
        !self.is_blind
    }

    fn own_identity(&self) -> Option<AuthId> {
        self.server.own_identity()
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        self.server.create(path, data, mode, acl)
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        self.server.delete(path)
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        self.server.list(path)
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        self.server.list_and_watch(path)
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        self.server.get(path)
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        let read = self.server.get_and_watch(path);
        async move {
            let (data, stat, watch) = read.await?;
            match self.is_blind && stat.ephemeral_owner == self.id().0 {
                true => Ok((data, stat, std::future::pending().boxed())),
                false => Ok((data, stat, watch)),
            }
        }
        .boxed()
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        self.server.exists_and_watch(path)
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        self.call.make();
        self.server.transact(operations)
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        self.server.get_each(paths)
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        self.server.sync(path)
    }
}
