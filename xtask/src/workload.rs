//! The programs of `benches` and `tests` that measure, show, or run for long.

use std::process::Command;

use anyhow::ensure;

use crate::cargo::{cargo, root, run as run_command};
use crate::install;

/// The arguments of a program.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to the program, which explains them after --help.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// The cost of a release by each waiting strategy, and of entering a queue, as the queue grows.
    #[command(disable_help_flag = true)]
    Herd(Arguments),
    /// The same workloads with these recipes, Apache Curator, kazoo and `zookeeper-client`. With
    /// `--round-trip`, over a network that has one.
    #[command(disable_help_flag = true)]
    Peers(Arguments),
    /// Handoffs of many sessions in an ensemble, and the death of a member, compared with Curator.
    #[command(disable_help_flag = true)]
    Sessions(Arguments),
    /// Up to 10,000 partitions over up to 100 workers: a start, a death, an arrival, a rolling
    /// restart. Compared with kazoo's `SetPartitioner`.
    #[command(disable_help_flag = true)]
    Assignment(Arguments),
    /// The overview of up to 100,000 queues: a look, what keeps it up to date, its memory, and what a
    /// contended lock loses beside it.
    #[command(disable_help_flag = true)]
    Overview(Arguments),
}

/// What a program needs beside Rust.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Servers,
    /// Servers, and the libraries of other languages.
    Peers,
}

/// Runs a bench, optimised.
pub(crate) fn bench(bench: &Bench) -> anyhow::Result<()> {
    let (program, arguments, needs) = match bench {
        Bench::Herd(arguments) => ("herd", arguments, Needs::Servers),
        Bench::Peers(arguments) => ("peers", arguments, Needs::Peers),
        Bench::Sessions(arguments) => ("sessions", arguments, Needs::Peers),
        Bench::Assignment(arguments) => ("assignment", arguments, Needs::Peers),
        Bench::Overview(arguments) => ("overview", arguments, Needs::Servers),
    };
    run("benches", program, &["--release"], arguments, needs)
}

/// Runs the demo. It is not optimised, so that it is built sooner.
pub(crate) fn demo(arguments: &Arguments) -> anyhow::Result<()> {
    run("benches", "demo", &[], arguments, Needs::Nothing)
}

/// Runs the workload of `tests/jepsen`, optimised. It makes networks of its own.
pub(crate) fn jepsen(arguments: &Arguments) -> anyhow::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status");
    let is_root = status.is_ok_and(|status| status.contains("\nUid:\t0\t"));
    ensure!(
        is_root || arguments.ask_for_help(),
        "jepsen needs Linux and root. It was not run."
    );
    run("jepsen", "jepsen", &["--release"], arguments, Needs::Peers)
}

/// Runs the processes of `tests/soak`, optimised.
pub(crate) fn soak(arguments: &Arguments) -> anyhow::Result<()> {
    run("soak", "soak", &["--release"], arguments, Needs::Servers)
}

impl Arguments {
    /// True if the program prints its usage only, and needs nothing installed.
    fn ask_for_help(&self) -> bool {
        self.words
            .iter()
            .any(|word| word == "--help" || word == "-h")
    }
}

/// Installs what a program needs, builds the program and runs it.
fn run(
    package: &str,
    program: &str,
    profile: &[&str],
    arguments: &Arguments,
    needs: Needs,
) -> anyhow::Result<()> {
    if needs != Needs::Nothing && !arguments.ask_for_help() {
        install::run()?;
        if needs == Needs::Peers {
            install::run_peers();
        }
    }
    let package = format!("zookeeper-recipes-{package}");
    let mut command = cargo(&["run", "--quiet", "--locked"]);
    if !arguments.ask_for_help() {
        command.args(profile);
    }
    command.args(["--package", &package, "--bin", program, "--"]);
    command
        .args(&arguments.words)
        .env("REPORT_COMMIT", commit());
    run_command(&mut command)
}

/// The commit of the sources, and whether they have changes, for the report.
fn commit() -> String {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(root()).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    match git(&["status", "--porcelain"]).as_deref() {
        Some("") => head,
        Some(_) => format!("{head} with changes"),
        None => format!("{head}, changes unknown"),
    }
}
