//! `cargo xtask test`: all tests, on real servers.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::cargo::{cargo, run as run_command, target};
use crate::install;

/// How many tests run at the same time. Most of them start servers, each a Java runtime.
const THREADS: &str = "4";

const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// Names the file in which the suites that not every machine can run say whether they ran.
const REPORT_VARIABLE: &str = "SUITES_REPORT";

/// The package of the benches.
const BENCHES: &str = "zookeeper-recipes-benches";

/// The packages whose tests need the programs that [`install::run_peers`] installs.
const NEED_MORE: [&str; 3] = [
    "zookeeper-recipes-interop",
    "zookeeper-recipes-faults",
    BENCHES,
];

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to `cargo test`: a filter, or `-p <crate>` for one crate instead of all.
    #[arg(allow_hyphen_values = true)]
    cargo: Vec<String>,

    /// Passed on to the tests.
    #[arg(last = true)]
    tests: Vec<String>,
}

/// Installs the missing programs and runs the tests. Not every machine can run all suites: says
/// which suites ran.
///
/// `cargo test` builds the examples too, and runs the doc tests. It runs a bench only if that is
/// named: once, without measuring.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    install::run()?;
    let needs_more = |word: &String| NEED_MORE.iter().any(|package| word.ends_with(package));
    if !names_a_package(arguments) || arguments.cargo.iter().any(needs_more) {
        install::run_peers();
    }
    let report = target().join("suites.txt");
    match fs::remove_file(&report) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {report:?}"));
        }
        _ => {}
    }
    let outcome = run_command(command(arguments).env(REPORT_VARIABLE, &report));
    print_report(&report)?;
    outcome?;
    match benches(arguments) {
        Some(mut command) => run_command(&mut command),
        None => Ok(()),
    }
}

/// Says which of the suites ran, and which did not and why. Prints nothing if there is no report.
fn print_report(report: &Path) -> anyhow::Result<()> {
    let text = match fs::read_to_string(report) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.with_context(|| format!("cannot read {report:?}"))?,
    };
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    println!("{}", lines.join("\n"));
    Ok(())
}

fn names_a_package(arguments: &Arguments) -> bool {
    let names = |word: &String| word.starts_with("-p") || word.starts_with("--package");
    arguments.cargo.iter().any(names)
}

/// The command that runs each bench once; `None` unless everything is tested, or the package of the
/// benches is the only argument.
fn benches(arguments: &Arguments) -> Option<Command> {
    let words: Vec<&str> = arguments.cargo.iter().map(String::as_str).collect();
    let package = match (words.as_slice(), arguments.tests.as_slice()) {
        // The whole workspace: its build has the features of all members.
        ([], []) => ["--workspace"].as_slice(),
        (["-p" | "--package", BENCHES], []) => ["--package", BENCHES].as_slice(),
        _ => return None,
    };
    let mut command = cargo(&["test", "--locked"]);
    command.args(package).args(["--bench", "*"]);
    Some(command)
}

fn command(arguments: &Arguments) -> Command {
    let mut command = cargo(&["test", "--no-fail-fast", "--locked"]);
    if !names_a_package(arguments) {
        command.arg("--workspace");
    }
    command.args(&arguments.cargo);
    if !arguments.tests.is_empty() {
        command.arg("--").args(&arguments.tests);
    }
    if env::var_os(THREADS_VARIABLE).is_none() {
        command.env(THREADS_VARIABLE, THREADS);
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cargo::line;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &[&str]) -> Arguments {
        CommandLine::parse_from(["test"].iter().chain(words)).arguments
    }

    fn run_by(words: &[&str]) -> String {
        line(&command(&arguments(words)))
    }

    #[test]
    fn everything_is_tested_unless_a_package_is_named() {
        assert_eq!(
            run_by(&[]),
            "cargo test --no-fail-fast --locked --workspace"
        );
        assert_eq!(
            run_by(&["-p", "xtask"]),
            "cargo test --no-fail-fast --locked -p xtask"
        );
    }

    #[test]
    fn arguments_reach_cargo_and_the_tests() {
        assert_eq!(
            run_by(&["--release", "restart", "--", "--nocapture"]),
            "cargo test --no-fail-fast --locked --workspace --release restart -- --nocapture"
        );
        assert_eq!(
            run_by(&["--", "--list"]),
            "cargo test --no-fail-fast --locked --workspace -- --list"
        );
    }

    #[test]
    fn benches_are_run_with_everything_or_by_their_name() {
        let run_by = |words: &[&str]| benches(&arguments(words)).as_ref().map(line);
        let everything = "cargo test --locked --workspace --bench *";
        assert_eq!(run_by(&[]).as_deref(), Some(everything));
        let named = format!("cargo test --locked --package {BENCHES} --bench *");
        assert_eq!(run_by(&["-p", BENCHES]), Some(named));
        assert_eq!(run_by(&["-p", "xtask"]), None);
        assert_eq!(run_by(&["restart"]), None);
        assert_eq!(run_by(&["--", "--list"]), None);
    }
}
