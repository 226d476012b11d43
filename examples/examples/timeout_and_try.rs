//! Not waiting for ever: `try_acquire` and `acquire_timeout`.
//!
//! `cargo run --example timeout_and_try`

use std::time::{Duration, Instant};

use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::{Error, ExclusiveLock, LockOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    let (theirs, ours) = (playground.connect().await?, playground.connect().await?);

    let options = LockOptions::new().data("node-7");
    let their_lock = ExclusiveLock::with_options(&theirs, "/locks/report", options)?;
    let their_hold = their_lock.acquire().await?;

    let lock = ExclusiveLock::new(&ours, "/locks/report")?;
    // One read, and nothing is written.
    assert!(lock.try_acquire().await?.is_none());
    let holder = &lock.contenders().await?[0];
    let name = String::from_utf8_lossy(&holder.data);
    println!("try_acquire: no, it is held by {name}");
    assert_eq!(name, "node-7");

    // The deadline bounds all of it, the server's round trips included.
    let began = Instant::now();
    match lock.acquire_timeout(Duration::from_millis(200)).await {
        Err(Error::DeadlineElapsed { .. }) => println!("acquire_timeout: not within 200 ms"),
        other => panic!("held by another, and yet: {other:?}"),
    }
    assert!(began.elapsed() >= Duration::from_millis(200));
    // The place in the queue is given up in the background.
    while lock.contenders().await?.len() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    their_hold.release().await?;
    let hold = lock.try_acquire().await?.ok_or("free, and yet not held")?;
    println!("try_acquire: yes, with token {}", hold.fencing_token());
    hold.release().await?;

    theirs.close().await;
    ours.close().await;
    Ok(playground.close().await?)
}
