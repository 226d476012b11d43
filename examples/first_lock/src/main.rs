//! The program of the README. It needs a server: `cargo run -p zookeeper-recipes-cli -- dev-server`.
//!
//! `cargo run -p first_lock`

use zookeeper_recipes_lock::{Error, ExclusiveLock, Session};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let servers = std::env::var("ZOOKEEPER_CONNECT").unwrap_or("127.0.0.1:2181".to_owned());
    let session = Session::connect(&servers).await?; // one per process, for all its recipes
    let lock = ExclusiveLock::new(&session, "/locks/report")?;
    let hold = lock.acquire().await?; // or try_acquire(), acquire_timeout(duration)
    let work = async { println!("writing the report under token {}", hold.fencing_token()) };
    if let Err(reason) = hold.run_until_lost(work).await {
        eprintln!("stopped: {reason}"); // before another process can acquire
    }
    hold.release().await?; // or drop the hold: it is released in the background
    session.close().await;
    Ok(())
}
