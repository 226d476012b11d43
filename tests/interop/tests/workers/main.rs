//! Workers of an assignment in processes of their own, on three servers that fail. A referee outside
//! judges that no two own a partition at once, and that the tokens of each partition ascend.
//!
//! Each fault comes once. With `FAULTS_SECONDS` they come again, in an order that `FAULTS_SEED`
//! decides, until the time has passed.
#![cfg(unix)]

mod faults;
mod workers;

use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_suite::number;

use crate::faults::{Fault, Faults};

#[tokio::test(flavor = "multi_thread")]
async fn no_partition_has_two_owners_on_a_failing_ensemble() {
    let seed = number("FAULTS_SEED").unwrap_or_else(|| fastrand::u64(..));
    let lasts = Duration::from_secs(number("FAULTS_SECONDS").unwrap_or(0));
    println!("FAULTS_SEED={seed} FAULTS_SECONDS={}", lasts.as_secs());
    let mut rng = Rng::with_seed(seed);
    let mut faults = Faults::begin(rng.fork()).await;
    let mut order = Fault::ALL;
    loop {
        rng.shuffle(&mut order);
        for fault in order {
            faults.strike(fault).await;
        }
        if faults.elapsed() >= lasts {
            break;
        }
    }
    faults.end().await;
}
