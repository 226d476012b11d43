//! Synchronous code under a lock: the runtime has a thread of its own, which keeps the session.
//!
//! `cargo run --example synchronous_code`

use std::error::Error;
use std::time::Duration;

use tokio::runtime;
use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::ExclusiveLock;

/// A step of the work, which blocks its thread.
fn step(number: u32) {
    std::thread::sleep(Duration::from_millis(300));
    println!("step {number} is done");
}

fn main() -> Result<(), Box<dyn Error>> {
    // The worker sends the probes while this thread blocks. A runtime of `new_current_thread` would
    // run only inside `block_on`: the lease would lapse during the work.
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    // Shorter than the work, so that a session that nobody keeps would be lost.
    let playground = runtime.block_on(Playground::open_with(Duration::from_secs(1)))?;
    let session = runtime.block_on(playground.connect())?;
    let lock = ExclusiveLock::new(&session, "/report")?;

    let hold = runtime.block_on(lock.acquire())?;
    for number in 1..=5 {
        // Looks at the clock, and sends nothing.
        if !hold.is_held() {
            return Err("the lock was lost: the work stops".into());
        }
        step(number);
    }
    println!("held to the end: {}", hold.is_held());
    runtime.block_on(hold.release())?;

    runtime.block_on(session.close());
    Ok(runtime.block_on(playground.close())?)
}
