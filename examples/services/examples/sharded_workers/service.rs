//! The service: shards that its instances own, and a page that says which instance owns which.
//!
//! A copy of this file needs these dependencies, and a program as for the template `leader_service`:
//!
//! ```toml
//! anyhow = "1"
//! axum = "0.8"
//! tokio = { version = "1", features = ["macros", "rt-multi-thread", "signal", "time"] }
//! zookeeper-recipes-assignment = { git = "https://github.com/zookeeper-recipes/zookeeper-recipes" }
//! ```

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use zookeeper_recipes_assignment::{
    Assignment, AssignmentOperator, AssignmentOptions, Partition, Partitions, Routing, Session,
};

/// Where the shards are assigned.
pub(crate) const PATH: &str = "/service/shards";
/// The number of shards.
pub(crate) const SHARDS: usize = 12;

/// Owns shards and serves the page until `shutdown`.
///
/// `id` is the name of this instance, which it keeps when it starts again. `address` is where other
/// programs reach it, which a listener on all interfaces does not know.
pub(crate) async fn run(
    session: Session,
    id: String,
    address: String,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let options = AssignmentOptions::new()
        .address(address)
        // A piece of the work takes 100 ms.
        .drain_at_most(Duration::from_secs(1))
        .move_within(Duration::from_secs(3));
    let shards = Partitions::numbered(SHARDS);
    let assignment = Assignment::with_options(&session, PATH, shards, id, options)?;
    let routing = AssignmentOperator::new(&session, PATH)?.routing().await?;
    let pages = Router::new().route("/", get(page).with_state(routing));
    let pages = tokio::spawn(axum::serve(listener, pages).into_future());
    assignment.run(shutdown, consume).await?;
    pages.abort();
    session.close().await;
    Ok(())
}

/// The work on one shard, until another instance takes over.
async fn consume(owned: Partition) -> std::io::Result<()> {
    eprintln!("shard {} with token {}", owned.id(), owned.fencing_token());
    while !owned.is_draining() {
        // One piece of the work. Send the token with each write.
        let piece = Duration::from_millis(100);
        let _ = timeout(piece, owned.draining()).await;
    }
    Ok(())
}

/// The routing: a line for each shard with its owner.
async fn page(State(routing): State<watch::Receiver<Routing>>) -> String {
    let routing = routing.borrow();
    let lines = routing.iter().map(|(shard, owner)| {
        let (worker, address, token) = (&owner.worker, &owner.address, owner.fencing_token);
        format!("{shard} {worker} {address} {token}\n")
    });
    lines.collect()
}
