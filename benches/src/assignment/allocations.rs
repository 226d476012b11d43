//! What this process has allocated.

use std::alloc::System;
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::time::sleep;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How often the allocator is read for one count, and the interval: a request may be under way.
const READINGS: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(50);

/// The least number of live bytes within a second.
pub(crate) async fn live() -> isize {
    let mut least = isize::MAX;
    for _ in 0..READINGS {
        sleep(INTERVAL).await;
        let stats = ALLOCATOR.stats();
        let live = stats.bytes_allocated as isize - stats.bytes_deallocated as isize;
        least = least.min(live);
    }
    least
}
