//! The service: two pages, and work on one instance at a time.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use futures_util::FutureExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use zookeeper_recipes_election::{LeaderElection, LeaderState, Session, Term};

/// How long the work may take to stop once the leadership is lost.
const GRACE: Duration = Duration::from_secs(2);

/// Serves the pages and campaigns until `shutdown`, for example until Ctrl-C.
///
/// A session of `Session::connect_in_background` lets the service start before the servers.
pub(crate) async fn run(
    session: Session,
    id: String,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let election = LeaderElection::new(&session, "/service/leader", id)?;
    let pages = Router::new()
        .route("/healthz", get(healthz).with_state(election.clone()))
        .route("/leader", get(leader).with_state(election.watch_leader()));

    let shutdown = shutdown.shared();
    let serve = axum::serve(listener, pages).with_graceful_shutdown(shutdown.clone());
    let serve = tokio::spawn(serve.into_future());
    election.run(shutdown, lead).await?;
    serve.await??;
    session.close().await;
    Ok(())
}

/// The leader's work. It is dropped before another instance can lead. An error ends the service.
async fn lead(term: Term) -> std::io::Result<()> {
    eprintln!("{} leads with token {}", term.id(), term.fencing_token());
    loop {
        // One piece of the work. Send the token with each write.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
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

/// Who leads, and with which token.
async fn leader(State(leader): State<watch::Receiver<LeaderState>>) -> (StatusCode, String) {
    let unavailable = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
    match &*leader.borrow() {
        LeaderState::Leader(leader) => (
            StatusCode::OK,
            format!("{} {}", leader.id, leader.fencing_token),
        ),
        LeaderState::Nobody => unavailable("nobody"),
        LeaderState::Unknown | LeaderState::Refused(_) => unavailable("unknown"),
    }
}
