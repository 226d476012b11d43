//! The README's test. It needs no server.

use zookeeper_recipes_lock::{ConnectOptions, Error, ExclusiveLock, Session};
use zookeeper_recipes_simulation::Simulation;

#[tokio::test(start_paused = true)]
async fn holder_that_is_cut_off_stops() -> Result<(), Error> {
    let worker = Simulation::default().process("worker");
    let session = Session::open(worker.ensemble(), ConnectOptions::new()).await?;
    let hold = ExclusiveLock::new(&session, "/lock")?.acquire().await?;
    worker.partition(std::time::Duration::from_secs(3600)); // in simulated time
    hold.lost().await;
    assert!(!hold.is_held());
    Ok(())
}
