//! A lock for each customer: the tasks of a process share its hold, one after the other.
//!
//! `cargo run --example many_locks`

use std::collections::BTreeSet;

use tokio::task::JoinSet;
use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::Locks;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    let session = playground.connect().await?;
    let customers = Locks::new(&session, "/customers")?;
    let mut tasks = JoinSet::new();
    for order in 0..40 {
        let customer = customers.mutex(format!("customer-{}", order % 4))?;
        tasks.spawn(async move {
            let hold = customer.acquire().await?;
            let token = hold.fencing_token();
            hold.release().await.map(|()| token)
        });
    }
    let mut tokens = BTreeSet::new();
    while let Some(order) = tasks.join_next().await {
        tokens.insert(order??);
    }
    let holds = tokens.len();
    println!("40 orders of 4 customers: {holds} holds, each shared by the tasks of the process");
    session.close().await;
    Ok(playground.close().await?)
}
