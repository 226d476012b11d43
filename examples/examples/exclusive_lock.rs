//! An exclusive lock: a holder, a try, a bounded wait, a waiter, and a holder that loses the lock.
//!
//! `cargo run --example exclusive_lock`

use std::future::pending;
use std::time::Duration;

use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::{Error, ExclusiveLock, LockOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    // The two sessions act as two processes.
    let (ours, theirs) = (playground.connect().await?, playground.connect().await?);
    let options = LockOptions::new().data("node-7");
    let our_lock = ExclusiveLock::with_options(&ours, "/locks/report", options)?;
    let their_lock = ExclusiveLock::new(&theirs, "/locks/report")?;
    let our_hold = our_lock.acquire().await?;
    let our_token = our_hold.fencing_token();
    println!("node-7 holds under token {our_token}");

    // One read, and nothing is written.
    assert!(their_lock.try_acquire().await?.is_none());
    let holder = &their_lock.contenders().await?[0];
    let name = String::from_utf8_lossy(&holder.data);
    println!("try_acquire: no, it is held by {name}");

    // The deadline bounds all of it, the server's round trips included.
    match their_lock.acquire_timeout(Duration::from_millis(200)).await {
        Err(Error::DeadlineElapsed { .. }) => println!("acquire_timeout: not within 200 ms"),
        other => panic!("held by another, and yet: {other:?}"),
    }
    // The place in the queue is given up in the background.
    while our_lock.contenders().await?.len() > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    // A waiter holds as soon as the holder before it releases.
    let waiter = tokio::spawn({
        let their_lock = their_lock.clone();
        async move { their_lock.acquire_timeout(Duration::from_secs(30)).await }
    });
    while our_lock.contenders().await?.len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
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
    assert!(our_lock.contenders().await?.is_empty(), "nobody is left");
    ours.close().await;
    Ok(playground.close().await?)
}
