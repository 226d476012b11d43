//! `cargo xtask bench` and `cargo xtask demo`: the programs of `benches`.

use std::process::Command;

use crate::cargo::{cargo, run as run_command};
use crate::install;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// The cost of a release by each way to wait, and of entering a queue, as the queue grows.
    #[command(disable_help_flag = true)]
    Herd(Arguments),
    /// The same work by these recipes, by Apache Curator, by kazoo and by `zookeeper-client`. With
    /// `--round-trip` over a network that has one.
    #[command(disable_help_flag = true)]
    Peers(Arguments),
    /// The handoffs of many sessions in an ensemble, and the death of a member, beside Curator's.
    #[command(disable_help_flag = true)]
    Sessions(Arguments),
    /// Up to 10,000 partitions over up to 100 workers: a start, a death, an arrival, a rolling
    /// restart. Beside kazoo's `SetPartitioner`.
    #[command(disable_help_flag = true)]
    Assignment(Arguments),
}

/// The arguments of a program of the benches.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to the program, which explains them after --help.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

impl Arguments {
    /// True if the program prints its usage only, and needs nothing installed.
    pub(crate) fn ask_for_help(&self) -> bool {
        self.has("--help") || self.has("-h")
    }

    fn has(&self, wanted: &str) -> bool {
        self.words.iter().any(|word| word == wanted)
    }
}

impl Bench {
    /// The program, and the arguments that the user gives.
    fn program(&self) -> (&str, &Arguments) {
        match self {
            Bench::Herd(arguments) => ("herd", arguments),
            Bench::Peers(arguments) => ("peers", arguments),
            Bench::Sessions(arguments) => ("sessions", arguments),
            Bench::Assignment(arguments) => ("assignment", arguments),
        }
    }
}

/// Installs the server and the libraries that the bench needs, and runs the bench, optimised.
pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    let (program, arguments) = bench.program();
    if !arguments.ask_for_help() {
        install::run()?;
        if program != "herd" {
            install::run_peers();
        }
    }
    run_command(&mut command(program, &["--release"], arguments))
}

/// Whether this process may make networks.
pub(crate) fn is_root_on_linux() -> bool {
    let status = std::fs::read_to_string("/proc/self/status");
    status.is_ok_and(|status| status.contains("\nUid:\t0\t"))
}

/// Installs a server if the demo starts one, and becomes the demo.
///
/// The demo takes the place of this process, so that an interrupt reaches the demo itself, which
/// then cleans up. The call returns only if that fails.
pub(crate) fn demo(arguments: &Arguments) -> anyhow::Result<()> {
    if needs_a_server(arguments) {
        install::run()?;
    }
    // The demo is not optimised, so that it is built sooner. The holds and the server decide how
    // long it takes.
    become_command(command("demo", &[], arguments))
}

fn needs_a_server(arguments: &Arguments) -> bool {
    arguments.has("--server") && !arguments.ask_for_help()
}

#[cfg(unix)]
fn become_command(mut command: Command) -> anyhow::Result<()> {
    use std::os::unix::process::CommandExt;

    let error = anyhow::Error::from(command.exec());
    Err(error.context(format!("cannot run {}", crate::cargo::line(&command))))
}

/// Windows interrupts all processes of the console. This process then ends before the demo.
#[cfg(not(unix))]
fn become_command(mut command: Command) -> anyhow::Result<()> {
    run_command(&mut command)
}

/// The command that builds and runs a program of the benches.
fn command(program: &str, profile: &[&str], arguments: &Arguments) -> Command {
    let mut command = cargo(&["run", "--quiet", "--locked"]);
    command.args(profile);
    command.args([
        "--package",
        "zookeeper-recipes-benches",
        "--bin",
        program,
        "--",
    ]);
    command.args(&arguments.words);
    command
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(subcommand)]
        bench: Bench,
    }

    #[test]
    fn arguments_reach_the_bench() {
        let words = ["bench", "herd", "--help", "--contenders", "2,10"];
        let bench = CommandLine::parse_from(words).bench;
        let (program, arguments) = bench.program();
        assert!(arguments.ask_for_help());
        assert_eq!(
            crate::cargo::line(&command(program, &["--release"], arguments)),
            "cargo run --quiet --locked --release --package zookeeper-recipes-benches --bin herd -- \
             --help --contenders 2,10"
        );
    }

    #[test]
    fn server_is_installed_if_the_demo_starts_one() {
        let needs = |words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            needs_a_server(&Arguments { words })
        };
        assert!(needs(&["--contenders", "3", "--server"]));
        assert!(!needs(&["--hold", "1s", "--connect", "zk1:2181"]));
        assert!(!needs(&["--server", "--help"]));
    }
}
