//! Sessions of a simulation that do what no server does, and call a test at a moment.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use zookeeper_recipes_connection::DisconnectReason;
use zookeeper_recipes_core::ensemble::{
    Answer, Ensemble, EnsembleFacts, Exchange, RawReply, RawSession, RequestBody, RequestError,
    ServerSession, boxed_reply,
};
use zookeeper_recipes_core::{ConnectOptions, Session, SessionEnd};
use zookeeper_recipes_protocol::{Reply, ReplyBody};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_testkit::altered;
use zookeeper_recipes_testkit::fake::{FakeEnsemble, FakeSession, Open};

use crate::support::open;

type Function = Box<dyn FnOnce() + Send>;

/// A function of a test, called once.
#[derive(Clone, Default)]
pub(crate) struct Call(Arc<Mutex<Option<Function>>>);

impl Call {
    pub(crate) fn set(&self, call: impl FnOnce() + Send + 'static) {
        *self.0.lock().expect("no panic") = Some(Box::new(call));
    }

    pub(crate) fn make(&self) {
        let call = self.0.lock().expect("no panic").take();
        call.into_iter().for_each(|call| call());
    }
}

/// The ensemble, with sessions whose requests `send` sends or answers.
pub(crate) fn sending(
    ensemble: Arc<dyn Ensemble>,
    send: impl Fn(&Arc<dyn RawSession>, RequestBody) -> RawReply + Send + Sync + 'static,
) -> Arc<dyn Ensemble> {
    let send = Arc::new(send);
    Arc::new(altered::altered(ensemble, move |_, raw| {
        let (send, below) = (send.clone(), raw.clone());
        FakeSession {
            send: Box::new(move |request| send(&below, request)),
            ..altered::passing(raw)
        }
    }))
}

/// A session of this process, whose requests `send` sends or answers.
pub(crate) async fn altered(
    simulation: &Simulation,
    process: &str,
    send: impl Fn(&Arc<dyn RawSession>, RequestBody) -> RawReply + Send + Sync + 'static,
) -> Session {
    let ensemble = sending(simulation.ensemble(process), send);
    open(ensemble, ConnectOptions::new()).await
}

/// The ensemble, with sessions that call a test before they are closed.
pub(crate) fn calling_at_close(ensemble: Arc<dyn Ensemble>, call: &Call) -> Arc<dyn Ensemble> {
    let call = call.clone();
    Arc::new(altered::altered(ensemble, move |_, raw| {
        let (call, below) = (call.clone(), raw.clone());
        FakeSession {
            close: Box::new(move || {
                call.make();
                below.close();
            }),
            ..altered::passing(raw)
        }
    }))
}

/// The children in the answer to each list, as of a member that lags behind.
pub(crate) type Lists = Arc<Mutex<Option<Vec<String>>>>;

/// A session of this process whose lists are answered with these children.
pub(crate) async fn with_lists(simulation: &Simulation, process: &str) -> (Session, Lists) {
    let lists = Lists::default();
    let listed = lists.clone();
    let session = altered(simulation, process, move |raw, request| {
        let is_list = matches!(&request, RequestBody::GetChildren(read) if !read.watch);
        let children = listed.lock().expect("no panic").clone();
        match children.filter(|_| is_list) {
            Some(children) => answered(Reply::new(1, 1, ReplyBody::Children { children })),
            None => raw.send(request),
        }
    });
    (session.await, lists)
}

/// A reply that no server sends.
pub(crate) fn answered(reply: Reply) -> RawReply {
    let exchange = Exchange {
        sent: Duration::ZERO,
        answered: Duration::ZERO,
        connection: None,
    };
    boxed_reply(ready(Ok((Answer { reply, exchange }, None))))
}

/// A request without a reply.
pub(crate) fn fails(error: RequestError) -> RawReply {
    boxed_reply(ready(Err(error)))
}

/// The error of a request whose outcome is unknown.
pub(crate) fn unknown() -> RequestError {
    RequestError::Broken(DisconnectReason::Closed)
}

/// The session of a client that its user has connected, and keeps open.
pub(crate) async fn users_client(simulation: &Simulation, process: &str) -> ServerSession {
    let connector = simulation
        .ensemble(process)
        .connector(&ConnectOptions::new());
    let connected = connector.expect("no option is set").connect().await;
    connected.expect("it connects")
}

/// The ensemble of a user's client. A session of it sends no create once it is closed.
pub(crate) fn users_ensemble(simulation: &Simulation, client: ServerSession) -> FakeEnsemble {
    let open = move || {
        let is_closed = Arc::<AtomicBool>::default();
        let (raw, closed) = (client.raw.clone(), is_closed.clone());
        let session = FakeSession {
            send: Box::new(move |request| match request {
                RequestBody::Create2(_) if closed.load(Ordering::Relaxed) => {
                    fails(RequestError::Ended(SessionEnd::Closed))
                }
                request => raw.send(request),
            }),
            close: Box::new(move || is_closed.store(true, Ordering::Relaxed)),
            ..altered::passing(client.raw.clone())
        };
        let opened = ServerSession {
            left_open: Some(client.raw.clone()),
            raw: Arc::new(session),
            ..client.clone()
        };
        ready(Ok(opened)).boxed()
    };
    FakeEnsemble {
        facts: EnsembleFacts {
            session_timeout: None,
            ..simulation.ensemble("user").facts().clone()
        },
        connector: Box::new(move |options| {
            options.refuse_all_but(&[], "a client that its user has connected")?;
            let open: Open = Box::new(open.clone());
            Ok(open)
        }),
    }
}
