//! A job that a fleet runs at most once in each hour, also if the first process finishes quickly.
//!
//! `cargo run --example once_per_slot`

use std::convert::Infallible;
use std::time::Duration;

use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::{OncePerSlot, SlotOutcome, SlotState};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    let mut runs = 0;
    // Three processes of a fleet, whose timers fire one after the other.
    for name in ["node-1", "node-2", "node-3"] {
        let session = playground.connect().await?;
        let job = OncePerSlot::new(&session, "/jobs/report", Duration::from_secs(3_600))?;
        let report = async |_| {
            runs += 1;
            Ok::<_, Infallible>("written")
        };
        match job.run(report).await? {
            SlotOutcome::Own(written) => println!("{name}: the report is {}", written?),
            SlotOutcome::Taken(run) => match run.state {
                SlotState::Done => println!("{name}: {} has written the report", run.owner),
                SlotState::Failed => println!("{name}: {} has failed to write it", run.owner),
                // It is at most once, and not once: if that process has died, there is no report.
                _ => println!("{name}: {} writes it, or has died", run.owner),
            },
        }
        session.close().await;
    }
    // If the hour ends in between, the next hour has a report, too.
    assert!((1..=2).contains(&runs), "{runs}");
    Ok(playground.close().await?)
}
