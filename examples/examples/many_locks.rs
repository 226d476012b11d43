//! A lock for each customer: the tasks of a process share it, and hand it on.
//!
//! `cargo run --example many_locks`

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
        let lock = customers.lock(format!("customer-{}", order % 4))?;
        tasks.spawn(async move {
            let hold = lock.acquire().await?;
            let was_handed_on = hold.fencing_token().turn() > 0;
            hold.release().await.map(|()| was_handed_on)
        });
    }
    let mut handed_on = 0;
    while let Some(order) = tasks.join_next().await {
        handed_on += u32::from(order??);
    }
    println!("40 orders of 4 customers: {handed_on} holds were handed on within the process");
    session.close().await;
    Ok(playground.close().await?)
}
