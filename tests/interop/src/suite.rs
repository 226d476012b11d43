//! Suites that not every machine can run.

use std::env;
use std::fs::File;
use std::io::Write;

/// The file that suites write to whether they ran.
const REPORT: &str = "SUITES_REPORT";

/// Whether a suite can run that needs what not every machine has; `missing` is what this one lacks,
/// each with what to do about it.
///
/// The function prints that, for `cargo xtask test` to repeat at the end.
///
/// # Panics
///
/// If `CI` is set to `true`, a suite that cannot run is a failure.
pub fn can_run(suite: &str, missing: &[String]) -> bool {
    let line = match missing {
        [] => format!("{suite}: run"),
        missing => format!("{suite}: not run: {}", missing.join("; ")),
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
    assert!(
        missing.is_empty() || env::var_os("CI").is_none_or(|value| value != "true"),
        "{line}, and CI=true"
    );
    missing.is_empty()
}
