//! An ensemble and a session of functions: the only double of the traits of core.

use std::fmt;
use std::sync::Arc;

use zookeeper_recipes_core::ensemble::{
    Connector, Ensemble, EnsembleFacts, RawReply, RawSession, RequestBody, ServerSession,
    TreeEvents,
};
use zookeeper_recipes_core::{BoxFuture, ConnectOptions, InvalidInput, ServerError};

type Function<T> = Box<dyn Fn() -> T + Send + Sync>;
pub type Open = Function<BoxFuture<'static, Result<ServerSession, ServerError>>>;
type WatchTree = dyn Fn(&str) -> Option<TreeEvents> + Send + Sync;
type Connect = dyn Fn(&ConnectOptions) -> Result<Open, InvalidInput> + Send + Sync;

/// An ensemble whose sessions a function opens.
pub struct FakeEnsemble {
    pub facts: EnsembleFacts,
    pub connector: Box<Connect>,
}

struct FakeConnector(Open);

/// A session whose requests a function answers.
pub struct FakeSession {
    pub send: Box<dyn Fn(RequestBody) -> RawReply + Send + Sync>,
    /// `None` refuses each watch of a tree.
    pub watch_tree: Option<Box<WatchTree>>,
    pub orders_events: bool,
    pub leave_server: Function<()>,
    pub close: Function<()>,
}

macro_rules! unshown {
    ($($name:ident)*) => {$(impl fmt::Debug for $name {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(stringify!($name))
        }
    })*};
}

unshown!(FakeEnsemble FakeConnector FakeSession);

impl Ensemble for FakeEnsemble {
    fn facts(&self) -> &EnsembleFacts {
        &self.facts
    }

    fn connector(self: Arc<Self>, it: &ConnectOptions) -> Result<Arc<dyn Connector>, InvalidInput> {
        Ok(Arc::new(FakeConnector((self.connector)(it)?)))
    }
}

impl Connector for FakeConnector {
    fn connect(&self) -> BoxFuture<'_, Result<ServerSession, ServerError>> {
        (self.0)()
    }
}

impl RawSession for FakeSession {
    fn send(&self, request: RequestBody) -> RawReply {
        (self.send)(request)
    }

    fn watch_tree(&self, path: &str) -> Option<TreeEvents> {
        self.watch_tree.as_ref()?(path)
    }

    fn orders_events(&self) -> bool {
        self.orders_events
    }

    fn leave_server(&self) {
        (self.leave_server)();
    }

    fn close(&self) {
        (self.close)();
    }
}
