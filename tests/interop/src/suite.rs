//! Suites that not every machine can run.

use std::env;
use std::fs::{self, File};
use std::io::Write;

/// The file that suites write to whether they ran.
const REPORT: &str = "SUITES_REPORT";

/// Whether a suite can run that needs programs; `missing` is what this machine lacks, each with
/// what to do about it.
///
/// The function prints that, for `cargo xtask test` to repeat at the end.
///
/// # Panics
///
/// If `CI` is set to `true`, a suite that cannot run is a failure.
pub fn can_run(suite: &str, missing: &[String]) -> bool {
    let line = report(suite, &missing.join("; "));
    assert!(
        missing.is_empty() || env::var_os("CI").is_none_or(|value| value != "true"),
        "{line}, and CI=true"
    );
    missing.is_empty()
}

/// Whether a suite can run that needs Linux and root.
///
/// If they are missing, the function prints that, as [`can_run`] does. `CI=true` does not ask for
/// them, because neither can be installed.
pub fn can_run_as_root(suite: &str) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.contains("\nUid:\t0\t");
    if !is_root {
        report(suite, "it wants Linux and root");
    }
    is_root
}

/// Prints whether a suite runs, and returns the line.
fn report(suite: &str, missing: &str) -> String {
    let line = match missing {
        "" => format!("{suite}: run"),
        missing => format!("{suite}: not run: {missing}"),
    };
    eprintln!("{line}");
    if let Some(report) = env::var_os(REPORT) {
        let mut report = File::options()
            .create(true)
            .append(true)
            .open(report)
            .expect("the report can be written");
        // The line goes out in one write, since other tests write to the file, too.
        report
            .write_all(format!("{line}\n").as_bytes())
            .expect("the report can be written");
    }
    line
}
