//! The service: two pages, and work on one instance at a time.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use futures_util::FutureExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use zookeeper_recipes_election::{Leader, LeaderElection, Session, Term};

/// How long the work may take to stop once the leadership is lost.
const GRACE: Duration = Duration::from_secs(2);

/// Serves the pages and campaigns until `shutdown`, for example until Ctrl-C.
pub(crate) async fn run(
    session: Session,
    id: String,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let election = LeaderElection::new(&session, "/service/leader", id)?;
    let pages = Router::new()
        .route("/healthz", get(healthz).with_state(election.clone()))
        .route(
            "/leader",
            get(leader).with_state(election.watch_leader().await?),
        );

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

/// Whether this instance should go on living.
///
/// It should not if its work goes on after the leadership is lost. That no server answers is no
/// reason to restart it.
async fn healthz(State(election): State<LeaderElection>) -> (StatusCode, String) {
    let health = election.health(GRACE);
    let status = match health.is_healthy() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{}, {health}", election.session().health()))
}

/// Who leads, and with which token.
async fn leader(State(leader): State<watch::Receiver<Option<Leader>>>) -> (StatusCode, String) {
    match &*leader.borrow() {
        Some(leader) => (
            StatusCode::OK,
            format!("{} {}", leader.id, leader.fencing_token),
        ),
        None => (StatusCode::SERVICE_UNAVAILABLE, "nobody".to_owned()),
    }
}
