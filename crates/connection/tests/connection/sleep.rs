//! The clock of the lease counts the time that the machine sleeps.
//!
//! A test cannot let the machine sleep. In a time namespace the clock that counts the sleep can be
//! ahead of the clock that does not, as after a sleep.

use std::env;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use zookeeper_recipes_connection::now;

/// Set in the process inside the namespace.
const INSIDE: &str = "CLOCK_INSIDE";

const SLEEP: Duration = Duration::from_secs(10_000);

/// The clock of a process whose namespace has this offset.
fn clock_with(offset: &str) -> Duration {
    let output = Command::new("unshare")
        .args(["--time", offset, &SLEEP.as_secs().to_string()])
        .arg(env::current_exe().expect("this program has a path"))
        .args(["--exact", "--nocapture"])
        .arg("sleep::clock_counts_the_sleep_of_the_machine_and_no_offset_of_the_other_clock")
        .env(INSIDE, "1")
        .output()
        .expect("unshare runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let clock = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("clock="));
    let clock = clock.unwrap_or_else(|| panic!("{output:?}"));
    Duration::from_millis(clock.parse().expect("a number"))
}

#[test]
fn clock_counts_the_sleep_of_the_machine_and_no_offset_of_the_other_clock() {
    if env::var_os(INSIDE).is_some() {
        println!(" clock={} ", now().as_millis());
        return;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let has_namespaces = fs::exists("/proc/self/ns/time").unwrap_or(false);
    if !status.contains("\nUid:\t0\t") || !has_namespaces {
        eprintln!("clock after a sleep: not run, it wants Linux with time namespaces, and root");
        return;
    }
    let (began, before) = (Instant::now(), now());
    let slept = clock_with("--boottime");
    let other = clock_with("--monotonic");
    let most = before + began.elapsed() + Duration::from_secs(1);
    assert!(
        slept >= before + SLEEP && slept <= most + SLEEP,
        "{before:?}, {slept:?}"
    );
    assert!(other >= before && other <= most, "{before:?}, {other:?}");
}
