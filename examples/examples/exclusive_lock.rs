//! An exclusive lock: whoever holds it works, and stops when it is lost.
//!
//! `cargo run --example exclusive_lock`

use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::FencingToken;

use zookeeper_recipes_lock::{Error, ExclusiveLock, Session};

async fn make_report(session: &Session) -> Result<(), Error> {
    let lock = ExclusiveLock::new(session, "/locks/report")?;

    let hold = lock.acquire().await?; // or try_acquire(), acquire_timeout(duration)
    tokio::select! {
        () = write_report(hold.fencing_token()) => {}
        reason = hold.lost() => eprintln!("stopped: {reason}"), // before anyone else can hold
    }
    hold.release().await // or drop it: it is released in the background then
}

async fn write_report(token: FencingToken) {
    println!("the report is written under token {token}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    let session = playground.connect().await?;
    make_report(&session).await?;

    let lock = ExclusiveLock::new(&session, "/locks/report")?;
    assert!(lock.contenders().await?.is_empty(), "nobody is left");
    session.close().await;
    Ok(playground.close().await?)
}
