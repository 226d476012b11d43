//! The service: four pages, and work on one instance at a time.
//!
//! A report can be sent to any instance. An instance that does not lead forwards it to the leader,
//! at the address that the leader proclaims.
//!
//! A copy of this file needs these dependencies:
//!
//! ```toml
//! anyhow = "1"
//! axum = "0.8"
//! futures-util = "0.3"
//! hyper = { version = "1", features = ["client", "http1"] }
//! hyper-util = { version = "0.1", features = ["tokio"] }
//! tokio = { version = "1", features = ["macros", "rt-multi-thread", "signal"] }
//! zookeeper-recipes-election = { git = "https://github.com/zookeeper-recipes/zookeeper-recipes" }
//! ```
//!
//! and a program, such as this one:
//!
//! ```rust
//! mod service;
//!
//! use std::env::var;
//!
//! use tokio::net::TcpListener;
//! use zookeeper_recipes_election::{ConnectOptions, Session};
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let (servers, id, address) = (var("ZOOKEEPER_CONNECT")?, var("POD_NAME")?, var("POD_IP")?);
//!     let session = Session::connect_in_background(&servers, ConnectOptions::new())?;
//!     let listener = TcpListener::bind("0.0.0.0:8080").await?;
//!     let shutdown = async { drop(tokio::signal::ctrl_c().await) };
//!     service::run(session, id, format!("{address}:8080"), listener, shutdown).await
//! }
//! ```

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, http};
use futures_util::FutureExt;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use zookeeper_recipes_election::common::Backoff;
use zookeeper_recipes_election::{
    Error, ErrorKind, LeaderElection, LeaderState, Session, SessionState, Term,
};

/// How long the work may take to stop once the leadership is lost.
const GRACE: Duration = Duration::from_secs(2);

/// How long the leader may take to answer a request that another instance forwards.
const PATIENCE: Duration = Duration::from_secs(5);

/// The header of a forwarded request: the instance that forwards it.
const FORWARDED: &str = "x-forwarded-by";

/// What the pages of an instance know.
#[derive(Clone)]
struct Instance {
    id: String,
    /// The address at which the other instances reach this one.
    address: String,
    leader: watch::Receiver<LeaderState>,
    /// The last term in which this instance has led. The term itself knows whether it lasts.
    term: watch::Sender<Option<Term>>,
}

/// Serves the pages and campaigns until `shutdown`, for example until Ctrl-C.
///
/// `address` is where the other instances reach this one, which a listener on all interfaces does
/// not know.
/// A session of `Session::connect_in_background` lets the service start before the servers.
pub(crate) async fn run(
    session: Session,
    id: String,
    address: String,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let election = LeaderElection::new(&session, "/service/leader", &id)?;
    let instance = Instance {
        id,
        address,
        leader: election.watch_leader(),
        term: watch::Sender::new(None),
    };
    let pages = Router::new()
        .route("/healthz", get(healthz).with_state(election.clone()))
        .route("/ready", get(ready).with_state(election.clone()))
        .route("/leader", get(leader).with_state(instance.leader.clone()))
        .route("/reports", post(report).with_state(instance.clone()));

    let shutdown = shutdown.shared();
    let serve = axum::serve(listener, pages).with_graceful_shutdown(shutdown.clone());
    let serve = tokio::spawn(serve.into_future());
    let work = async |term| instance.lead(term).await;
    election.run(shutdown, work).await?;
    serve.await??;
    session.close().await;
    Ok(())
}

impl Instance {
    /// The leader's work. It is dropped before another instance can lead. An error ends the service.
    async fn lead(&self, term: Term) -> Result<(), Error> {
        eprintln!("{} leads with token {}", term.id(), term.fencing_token());
        self.term.send_replace(Some(term.clone()));
        let mut backoff = Backoff::default();
        while let Err(error) = term.proclaim(&self.address).await {
            match error.kind() {
                // For example, no permission to write to the directory.
                ErrorKind::AttemptFailed if !error.is_retryable() => return Err(error),
                // If the leadership is lost, this future is dropped.
                _ => backoff.wait().await,
            }
        }
        loop {
            // One piece of the work. Send the token with each write.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Sends a request to the leader at this address, and returns the answer.
    async fn forward(&self, address: &str, request: Request) -> anyhow::Result<Response> {
        let stream = TcpStream::connect(address).await?;
        let (mut leader, connection) = handshake(TokioIo::new(stream)).await?;
        // The task ends with the connection, which is used once.
        tokio::spawn(connection);
        let (head, body) = request.into_parts();
        let request = http::Request::post(head.uri)
            .header(header::HOST, address)
            .header(FORWARDED, &self.id)
            .body(body)?;
        Ok(leader.send_request(request).await?.map(Body::new))
    }
}

/// Takes a report: the leader writes it, and another instance forwards it to the leader.
async fn report(State(instance): State<Instance>, request: Request) -> Response {
    let term = instance.term.borrow().clone();
    if let Some(term) = term.filter(|term| term.is_held()) {
        return match axum::body::to_bytes(request.into_body(), 1 << 20).await {
            Ok(text) => write(&term, &text).into_response(),
            Err(error) => (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()).into_response(),
        };
    }
    // The instance that forwards it knows an old leader. Forwarding it again could go on for ever.
    let is_forwarded = request.headers().contains_key(FORWARDED);
    let leader = instance.leader.borrow().leader().cloned();
    let address = leader.and_then(|leader| leader.proclaimed);
    let Some(address) = address.filter(|_| !is_forwarded) else {
        return unavailable("no leader: send the report again").into_response();
    };
    let forwarded = timeout(PATIENCE, instance.forward(&address, request)).await;
    match forwarded {
        Ok(Ok(answer)) => answer,
        // The leader may have written the report or not.
        Ok(Err(error)) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        Err(late) => (StatusCode::GATEWAY_TIMEOUT, late.to_string()).into_response(),
    }
}

/// Writes a report. The store refuses the token once it has seen a newer one.
fn write(term: &Term, text: &Bytes) -> String {
    let (leader, token) = (term.id(), term.fencing_token());
    format!(
        "{leader} has written {} bytes with token {token}",
        text.len()
    )
}

/// Fails if the orchestrator should restart this instance.
///
/// That is so if its work continues after the leadership is lost. If no server answers, a restart
/// would not help.
async fn healthz(State(election): State<LeaderElection>) -> (StatusCode, String) {
    let health = election.health(GRACE);
    let status = match health.is_healthy() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{}, {health}", election.session().health()))
}

/// Succeeds if the orchestrator should send requests to this instance.
///
/// A standby is ready, too: it forwards to the leader, and an orchestrator that replaces instances
/// one by one waits until each is ready. An instance that is cut off is not ready, unless it still
/// leads.
async fn ready(State(election): State<LeaderElection>) -> (StatusCode, String) {
    let session = election.session();
    let (role, status) = match (election.is_leader(), session.state()) {
        (true, _) => ("leader", StatusCode::OK),
        (false, SessionState::Connected(_)) => ("standby", StatusCode::OK),
        (false, _) => ("standby", StatusCode::SERVICE_UNAVAILABLE),
    };
    (status, format!("{role}, {}", session.health()))
}

/// Who leads, and with which token.
async fn leader(State(leader): State<watch::Receiver<LeaderState>>) -> (StatusCode, String) {
    match &*leader.borrow() {
        LeaderState::Leader(leader) => (
            StatusCode::OK,
            format!("{} {}", leader.id, leader.fencing_token),
        ),
        LeaderState::Nobody => unavailable("nobody"),
        LeaderState::Unknown | LeaderState::Refused(_) => unavailable("unknown"),
    }
}

fn unavailable(why: &str) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
}
