//! Recipes over a `zookeeper_client::Client` that the program has connected and uses for the rest.
//!
//! `cargo run --example own_client`

use std::sync::Arc;
use std::time::Duration;

use zookeeper_client::Client;
use zookeeper_recipes::adapter::ClientEnsemble;
use zookeeper_recipes::{ConnectOptions, ExclusiveLock, Session};
use zookeeper_recipes_examples::Playground;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let playground = Playground::open().await?;
    // The timeout, the credentials and TLS are options of the client.
    let connector = Client::connector().with_session_timeout(Duration::from_secs(4));
    let client = connector.connect(&playground.connect_string()).await?;

    let ensemble = Arc::new(ClientEnsemble::new(client.clone()));
    let session = Session::open(ensemble, ConnectOptions::new()).await?;
    let lock = ExclusiveLock::new(&session, "/locks/report")?;
    // The first hold waits until the lease is renewed, a third of the timeout.
    let hold = lock.acquire().await?;
    let (_, stat) = client.get_data(hold.node_path()).await?;
    anyhow::ensure!(stat.ephemeral_owner == client.session_id().0);
    println!("held in the session of the program's own client");
    hold.release().await?;

    // This deletes the znodes of the recipes. The client's session stays open.
    session.close().await;
    let left = client.list_children("/locks/report").await?;
    println!(
        "the client is still connected, and {} znodes are left",
        left.len()
    );
    drop(client);
    playground.close().await
}
