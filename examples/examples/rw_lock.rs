//! A read/write lock: readers together, a writer alone, and a writer that continues as a reader.
//!
//! `cargo run --example rw_lock`

use std::time::Duration;

use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_rwlock::RwLock;

const SOON: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    let (theirs, ours) = (playground.connect().await?, playground.connect().await?);
    let their_lock = RwLock::new(&theirs, "/locks/catalogue")?;
    let lock = RwLock::new(&ours, "/locks/catalogue")?;

    // Readers hold together, and no writer beside them.
    let one = their_lock.read().acquire().await?;
    let another = lock.read().acquire().await?;
    assert!(one.is_held() && another.is_held());
    assert!(lock.write().try_acquire().await?.is_none());
    println!("two readers hold together, and no writer beside them");

    // Readers that come after a waiting writer do not pass it.
    let writer = tokio::spawn({
        let write = lock.write().clone();
        async move { write.acquire_timeout(SOON).await }
    });
    while lock.read().contenders().await?.len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(their_lock.read().try_acquire().await?.is_none());
    let late_reader = tokio::spawn({
        let read = their_lock.read().clone();
        async move { read.acquire_timeout(SOON).await }
    });
    while lock.read().contenders().await?.len() < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    one.release().await?;
    another.release().await?;
    let writing = writer.await??;
    assert!(!late_reader.is_finished());
    let token = writing.fencing_token();
    println!("the writer holds alone, with token {token}, before the reader who came later");

    // The reader gets in, and no writer has been in between.
    let reading = writing.downgrade().await?;
    let late_reading = late_reader.await??;
    assert!(reading.is_held() && late_reading.is_held());
    assert_eq!(reading.fencing_token(), token);
    assert!(their_lock.write().try_acquire().await?.is_none());
    println!("downgraded: the writer reads on, together with that reader");

    reading.release().await?;
    late_reading.release().await?;
    theirs.close().await;
    ours.close().await;
    Ok(playground.close().await?)
}
