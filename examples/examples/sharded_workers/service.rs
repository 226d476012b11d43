//! The service: shards that its instances own, and a page that says which instance owns which.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use zookeeper_recipes_assignment::{
    Assignment, AssignmentOperator, AssignmentOptions, Partition, Partitions, Routing, Session,
};

/// Where the shards are assigned.
pub(crate) const PATH: &str = "/service/shards";
/// The number of shards.
pub(crate) const SHARDS: usize = 12;

/// Owns shards and serves the page until `shutdown`. Nearly always `work` is [`consume`].
///
/// `id` is the name of this instance, which it keeps when it starts again.
pub(crate) async fn run<F>(
    session: Session,
    id: String,
    listener: TcpListener,
    work: impl Fn(Partition) -> F + Send + Sync + 'static,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()>
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let address = listener.local_addr()?.to_string();
    let options = AssignmentOptions::new()
        .address(address)
        // A piece of the work takes 100 ms.
        .drain_at_most(Duration::from_secs(1))
        .move_within(Duration::from_secs(3));
    let shards = Partitions::numbered(SHARDS);
    let assignment = Assignment::with_options(&session, PATH, shards, id, options)?;
    let routing = AssignmentOperator::new(&session, PATH)?.routing().await?;
    let pages = tokio::spawn(serve(routing, listener));
    assignment.run(shutdown, work).await?;
    pages.abort();
    session.close().await;
    Ok(())
}

/// The work on one shard, until another instance takes over.
pub(crate) async fn consume(owned: Partition) -> std::io::Result<()> {
    eprintln!("shard {} with token {}", owned.id(), owned.fencing_token());
    while !owned.is_draining() {
        // One piece of the work. Send the token with each write.
        let piece = Duration::from_millis(100);
        let _ = timeout(piece, owned.draining()).await;
    }
    Ok(())
}

/// Answers each request with the routing: a line for each shard with its owner.
async fn serve(routing: watch::Receiver<Routing>, listener: TcpListener) -> anyhow::Result<()> {
    loop {
        let (connection, _) = listener.accept().await?;
        tokio::spawn(answer(connection, routing.clone()));
    }
}

async fn answer(
    mut connection: TcpStream,
    routing: watch::Receiver<Routing>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if connection.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let page: String = {
        let routing = routing.borrow();
        let lines = routing.iter().map(|(shard, owner)| {
            let (worker, address, token) = (&owner.worker, &owner.address, owner.fencing_token);
            format!("{shard} {worker} {address} {token}\n")
        });
        lines.collect()
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{page}", page.len());
    connection.write_all(answer.as_bytes()).await
}
