//! The clock that all processes of the machine share.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time of `CLOCK_MONOTONIC`, which the clients in Java and Python read, too.
///
/// Java cannot read `CLOCK_BOOTTIME`. The two clocks differ by the sleep of the machine only.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    time.try_into().expect("the clock begins with the machine")
}
