//! An exclusive lock: a holder works, a waiter follows, and a holder that loses the lock stops.
//!
//! `cargo run --example exclusive_lock`

use std::future::pending;
use std::time::Duration;

use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::FencingToken;

use zookeeper_recipes_lock::{Error, ExclusiveLock, Session};

async fn make_report(session: &Session) -> Result<(), Error> {
    let lock = ExclusiveLock::new(session, "/locks/report")?;

    let hold = lock.acquire().await?; // or try_acquire(), acquire_timeout(duration)
    let work = write_report(hold.fencing_token());
    if let Err(reason) = hold.run_until_lost(work).await {
        eprintln!("stopped: {reason}"); // before another process can hold
    }
    hold.release().await // or drop the hold: it is released in the background
}

async fn write_report(token: FencingToken) {
    println!("the report is written under token {token}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    // The two sessions act as two processes.
    let (ours, theirs) = (playground.connect().await?, playground.connect().await?);
    make_report(&ours).await?;

    // A waiter holds as soon as the holder before it releases.
    let our_lock = ExclusiveLock::new(&ours, "/locks/report")?;
    let their_lock = ExclusiveLock::new(&theirs, "/locks/report")?;
    let our_hold = our_lock.acquire().await?;
    let waiter = tokio::spawn({
        let their_lock = their_lock.clone();
        async move { their_lock.acquire_timeout(Duration::from_secs(30)).await }
    });
    while our_lock.contenders().await?.len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("token {} holds, and one waits", our_hold.fencing_token());
    let our_token = our_hold.fencing_token();
    our_hold.release().await?;
    let their_hold = waiter.await??;
    assert!(their_hold.fencing_token() > our_token, "tokens grow");
    println!("released: token {} holds", their_hold.fencing_token());

    // Work stops when its lock is lost. Here the session is closed. If it were cut off from the
    // servers, the same would happen before they expire it.
    let (stopped, ()) = tokio::join!(their_hold.run_until_lost(pending::<()>()), theirs.close());
    let reason = stopped.err().ok_or("the work ended by itself")?;
    println!("the work was stopped: {reason}");
    let released = their_hold.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");

    make_report(&ours).await?;
    assert!(our_lock.contenders().await?.is_empty(), "nobody is left");
    ours.close().await;
    Ok(playground.close().await?)
}
