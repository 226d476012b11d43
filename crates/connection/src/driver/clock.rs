//! The clock of the machine, which counts the time that the machine sleeps, and tokio's clock.
//!
//! [`Instant`](std::time::Instant) does not count that time on each system.

use std::time::Duration;

/// True if the clock of the current tokio runtime is paused, as in a test with `start_paused`.
///
/// tokio does not say so. A paused clock does not move while a thread of its runtime is busy. So
/// this function keeps the thread busy until ten microseconds have passed, and looks if tokio's
/// clock has moved. False outside a runtime.
pub fn tokio_is_paused() -> bool {
    let of_tokio = tokio::time::Instant::now();
    let of_machine = std::time::Instant::now();
    while of_machine.elapsed() < Duration::from_micros(10) {
        std::hint::spin_loop();
    }
    of_tokio.elapsed().is_zero()
}

/// The time since some fixed moment. It never goes back, and counts the time that the machine
/// sleeps.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "openbsd"))]
pub fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.try_into().unwrap_or_default()
}

/// The time since some fixed moment, as `mach_continuous_time` counts it. It never goes back.
#[cfg(target_vendor = "apple")]
pub fn now() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    let clock = ClockId::from_raw(nix::libc::CLOCK_MONOTONIC_RAW);
    // Only an unknown clock is an error, and macOS 10.12 and iOS 10 know this one.
    let time = clock_gettime(clock).expect("the system has this clock");
    time.into()
}

/// The time since the first call. It never goes back.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "openbsd",
    target_vendor = "apple"
)))]
pub fn now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
