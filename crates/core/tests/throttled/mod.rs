//! An ensemble whose servers refuse reads, as they are told to.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::BoxStream;
use zookeeper_recipes_core::ensemble::{
    ConnectionState, Created, Node, Reply, ServerSession, TransactionError, Watch,
};
use zookeeper_recipes_core::{
    Acl, AuthId, CreateMode, Ensemble, Identity, Operation, Outcome, Refusal, ServerError,
    SessionId, Stat,
};

/// Whether reads with a watch are refused, how many were, and what nobody may read among others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Throttle {
    is_on: Arc<AtomicBool>,
    refused: Arc<AtomicUsize>,
    forbidden: Arc<Mutex<Option<String>>>,
}

impl Throttle {
    pub(crate) fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    pub(crate) fn forbid(&self, path: &str) {
        *self.forbidden.lock().expect("no panic") = Some(path.to_owned());
    }

    fn forbids(&self, paths: &[String]) -> bool {
        let forbidden = self.forbidden.lock().expect("no panic");
        forbidden.as_ref().is_some_and(|path| paths.contains(path))
    }

    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    fn refuses(&self) -> bool {
        let refuses = self.is_on.load(Ordering::Relaxed);
        if refuses {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        refuses
    }
}

/// This ensemble, under a throttle.
#[derive(Debug)]
pub(crate) struct Throttled(pub(crate) Arc<dyn Ensemble>, pub(crate) Throttle);

impl Ensemble for Throttled {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        let opened = async {
            let session = ThrottledSession(self.0.connect().await?, self.1.clone());
            Ok(Arc::new(session) as Arc<dyn ServerSession>)
        };
        opened.boxed()
    }

    fn now(&self) -> Duration {
        self.0.now()
    }

    fn address(&self) -> String {
        self.0.address()
    }

    fn identity(&self) -> Identity {
        self.0.identity()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        self.0.task(work)
    }
}

#[derive(Debug)]
struct ThrottledSession(Arc<dyn ServerSession>, Throttle);

impl ServerSession for ThrottledSession {
    fn id(&self) -> SessionId {
        self.0.id()
    }

    fn timeout(&self) -> Duration {
        self.0.timeout()
    }

    fn state(&self) -> ConnectionState {
        self.0.state()
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        self.0.states()
    }

    fn disconnected(&self) -> BoxFuture<'static, ()> {
        self.0.disconnected()
    }

    fn own_identity(&self) -> Option<AuthId> {
        self.0.own_identity()
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        self.0.create(path, data, mode, acl)
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        self.0.delete(path)
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        self.0.list(path)
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        self.0.list_and_watch(path)
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        self.0.get(path)
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        if self.1.refuses() {
            return ready(Err(ServerError::Refused(Refusal::Throttled))).boxed();
        }
        self.0.get_and_watch(path)
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        self.0.exists_and_watch(path)
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        self.0.transact(operations)
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        if self.1.forbids(paths) {
            return ready(Err(ServerError::Refused(Refusal::NoAuth))).boxed();
        }
        self.0.get_each(paths)
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        self.0.sync(path)
    }
}
