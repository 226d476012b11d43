//! `cargo xtask test`: all tests, on real servers.

mod programs;

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::cargo::{cargo, run as run_command, target};
use crate::install;

pub(crate) use programs::{Artifact, Program, built_by};

/// How many tests run at the same time. Most of them start servers, each a Java runtime.
const THREADS: &str = "4";

const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// The modules of tests that the gate leaves to the night: on Apache's server, what the embedded
/// server answers in the same way, and the longest searches.
const AT_NIGHT: &str = "at_night::";

/// Names the file in which the suites that not every machine can run say whether they ran.
const REPORT_VARIABLE: &str = "SUITES_REPORT";

/// The packages whose tests take longest, in the order in which they are to begin.
const LONG: [&str; 11] = [
    "zookeeper-recipes-models",
    "zookeeper-recipes-shuttle",
    "zookeeper-recipes-interop",
    "zookeeper-recipes-faults",
    "zookeeper-recipes-conformance",
    "zookeeper-recipes-cli",
    "zookeeper-recipes-simulation",
    "zookeeper-recipes-soak",
    "zookeeper-recipes-benches",
    "zookeeper-recipes-example-services",
    "zookeeper-recipes-testkit",
];

/// The packages whose tests need the programs that [`install::run_peers`] installs.
const NEED_MORE: [&str; 4] = [
    "zookeeper-recipes-cli",
    "zookeeper-recipes-interop",
    "zookeeper-recipes-faults",
    "zookeeper-recipes-benches",
];

/// The package whose tests need the store that [`install::run_stores`] installs.
const NEEDS_STORES: &str = "zookeeper-recipes-example-services";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Also runs what the gate leaves to the night: on Apache's server, what the other runs test on
    /// the embedded server only, and the longest searches.
    #[arg(long)]
    all_servers: bool,

    /// Passed on to `cargo test`: a filter, or `-p <crate>` for one crate instead of all.
    #[arg(allow_hyphen_values = true)]
    cargo: Vec<String>,

    /// Passed on to the tests.
    #[arg(last = true)]
    tests: Vec<String>,
}

/// Tests the page of `zkr serve` in a browser.
pub(crate) fn page() -> anyhow::Result<()> {
    install::run_page()?;
    let pictures = target().join("page");
    fs::create_dir_all(&pictures)?;
    let mut test = cargo(&["test", "--package", "zookeeper-recipes-cli"]);
    test.args(["--test", "page"]);
    // The times are measured, so one test runs at a time.
    test.args(["--", "--nocapture", "--test-threads", "1"]);
    run_command(test.env("PAGE_PICTURES", pictures))
}

/// Installs the missing programs and runs the tests. Not every machine can run all suites. The
/// report says which suites ran.
///
/// Without arguments it runs all tests, several programs at a time. With arguments it is
/// `cargo test`.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.cargo.is_empty() && arguments.tests.is_empty() {
        return run_all(build()?, arguments.all_servers);
    }
    install(arguments)?;
    reported(|report| run_command(command(arguments).env(REPORT_VARIABLE, report)))
}

pub(crate) fn build() -> anyhow::Result<Vec<Program>> {
    programs::build(&LONG)
}

/// Installs the missing programs and runs all tests. Those of [`AT_NIGHT`] run if `all_servers` is true.
pub(crate) fn run_all(mut programs: Vec<Program>, all_servers: bool) -> anyhow::Result<()> {
    install(&Arguments::default())?;
    if !all_servers {
        programs.iter_mut().for_each(|it| it.skip(AT_NIGHT));
    }
    reported(|report| {
        programs::run(programs, |command| {
            few_threads(command).env(REPORT_VARIABLE, report);
        })
    })
}

/// Installs what the tests need that the arguments name.
fn install(arguments: &Arguments) -> anyhow::Result<()> {
    install::run()?;
    let tests = |package: &str| {
        let is_named = arguments.cargo.iter().any(|word| word.ends_with(package));
        is_named || !names_a_package(arguments)
    };
    if NEED_MORE.into_iter().any(tests) {
        install::run_peers();
    }
    if tests(NEEDS_STORES) {
        install::run_stores();
    }
    Ok(())
}

/// Runs tests, and prints what they say to the file of the report.
fn reported(tests: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let report = target().join("suites.txt");
    match fs::remove_file(&report) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {report:?}"));
        }
        _ => {}
    }
    let outcome = tests(&report);
    print_report(&report)?;
    outcome
}

/// Says which of the suites ran, and which did not and why. The call prints nothing if there is no
/// report.
fn print_report(report: &Path) -> anyhow::Result<()> {
    let text = match fs::read_to_string(report) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.with_context(|| format!("cannot read {report:?}"))?,
    };
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    // A suite says so once for each server that it runs on.
    lines.dedup();
    println!("{}", lines.join("\n"));
    Ok(())
}

fn names_a_package(arguments: &Arguments) -> bool {
    let names = |word: &String| word.starts_with("-p") || word.starts_with("--package");
    arguments.cargo.iter().any(names)
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
    few_threads(&mut command);
    command
}

/// Bounds how many tests of a program run at the same time, if the user does not.
pub(crate) fn few_threads(command: &mut Command) -> &mut Command {
    match env::var_os(THREADS_VARIABLE) {
        None => command.env(THREADS_VARIABLE, THREADS),
        Some(_) => command,
    }
}
