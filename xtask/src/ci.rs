//! `cargo xtask ci`: every check that a change has to pass.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::cargo::{Package, cargo, packages, run as run_command};
use crate::{licences, simulate, structure, test, threads};

/// Runs all checks, the quick ones first; the first that fails ends the run. Those that need no server
/// run beside the tests, which wait for theirs half of the time.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut steps = Steps::default();
    steps.run("format", || {
        run_command(&mut cargo(&["fmt", "--all", "--check"]))?;
        run_command(&mut threads::cargo(&["fmt", "--all", "--check"]))
    })?;
    steps.run("licences", licences::run)?;
    steps.run("structure", structure::run)?;
    steps.run("lints", || {
        let targets = ["--workspace", "--all-targets", "--all-features", "--locked"];
        let mut command = cargo(&["clippy"]);
        run_command(command.args(targets).args(["--", "--deny", "warnings"]))
    })?;
    let mut programs = steps.run("build of the tests", test::build)?;
    // Only one call of cargo at a time can build: the seeds run beside the first one.
    let beside = [
        ("documentation", documentation()),
        ("simulation", simulate::command_for_ci()),
        ("without features", without_features()?),
    ];
    let beside = beside.map(|(name, command)| test::Program::computing(name, &command));
    programs.extend(beside);
    steps.run("tests", || test::run_all(programs, false))?;
    steps.print();
    Ok(())
}

fn documentation() -> Command {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "--deny warnings");
    command
}

fn without_features() -> anyhow::Result<Command> {
    let mut command = cargo(&["check", "--locked", "--no-default-features"]);
    for package in packages()?.iter().filter(|it| it.is_published_here()) {
        command.args(["--package", &package.name]);
    }
    Ok(command)
}

/// Compiles each published crate by itself, which finds a feature that only a sibling switches on.
pub(crate) fn alone() -> anyhow::Result<()> {
    let packages = packages()?;
    let mut published = packages.iter().filter(|it| it.is_published_here());
    published.try_for_each(check_alone)
}

/// Compiles a crate by itself: without features, and with all of them if it has any.
fn check_alone(package: &Package) -> anyhow::Result<()> {
    let check = |features: &str| {
        let mut command = cargo(&["check", "--locked", "--package", &package.name]);
        run_command(command.arg(features))
    };
    check("--no-default-features")?;
    match package.features.is_empty() {
        true => Ok(()),
        false => check("--all-features"),
    }
}

/// The steps that have passed, and how long each took.
#[derive(Debug, Default)]
struct Steps {
    times: Vec<(String, Duration)>,
}

impl Steps {
    fn run<T>(
        &mut self,
        name: &str,
        check: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        println!("== {name}");
        let began = Instant::now();
        let outcome = check();
        let outcome = outcome.map_err(|error| error.context(format!("{name}: failed")))?;
        let took = began.elapsed();
        println!("== {name}: {}", seconds(took));
        self.times.push((name.to_owned(), took));
        Ok(outcome)
    }

    fn print(&self) {
        println!();
        for (name, took) in &self.times {
            println!("{:>8}  {name}", seconds(*took));
        }
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}
