//! `cargo xtask bench` and `cargo xtask demo`: the programs of `benches`.

use std::process::Command;

use crate::cargo::{cargo, run as run_command};
use crate::install;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// The cost of a release by each way to wait, as the number of contenders grows.
    #[command(disable_help_flag = true)]
    Herd(Arguments),
    /// The cost of entering and leaving a queue, as the queue grows.
    #[command(disable_help_flag = true)]
    Queue(Arguments),
    /// The time of each operation at the embedded server, compared to Apache's server.
    #[command(disable_help_flag = true)]
    Embedded(Arguments),
    /// The same work by these recipes, by Apache Curator, by kazoo and by `zookeeper-client`.
    #[command(disable_help_flag = true)]
    Peers(Arguments),
    /// The same over a network with a round trip, without leaving the machine. Wants Linux and root.
    #[command(disable_help_flag = true)]
    Network(Arguments),
    /// The memory of an idle lock, of a hold and of a waiter, beside Curator's and kazoo's.
    #[command(disable_help_flag = true)]
    Memory(Arguments),
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
    /// The program, its first argument, and those that the user gives.
    fn program(&self) -> (&str, Option<&str>, &Arguments) {
        match self {
            Bench::Herd(arguments) => ("herd", None, arguments),
            Bench::Queue(arguments) => ("queue", None, arguments),
            Bench::Embedded(arguments) => ("embedded", None, arguments),
            Bench::Peers(arguments) => ("peers", None, arguments),
            Bench::Network(arguments) => ("peers", Some("network"), arguments),
            Bench::Memory(arguments) => ("memory", None, arguments),
            Bench::Sessions(arguments) => ("sessions", None, arguments),
            Bench::Assignment(arguments) => ("assignment", None, arguments),
        }
    }

    fn asks_for_help(&self) -> bool {
        let (_, _, arguments) = self.program();
        arguments.ask_for_help()
    }

    fn measures_peers(&self) -> bool {
        !matches!(self, Bench::Herd(_) | Bench::Queue(_) | Bench::Embedded(_))
    }
}

/// Installs the server and the libraries that the bench needs, and runs the bench, optimised.
///
/// Without the right to make a network, the bench that wants one is not run.
pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    if bench.asks_for_help() {
        return run_command(&mut optimised(bench));
    }
    if matches!(bench, Bench::Network(_)) && !is_root_on_linux() {
        println!("bench network wants Linux and root. It was not run.");
        return Ok(());
    }
    install::run()?;
    if bench.measures_peers() {
        install::run_peers();
    }
    run_command(&mut optimised(bench))
}

/// Whether this process may make networks.
pub(crate) fn is_root_on_linux() -> bool {
    let status = std::fs::read_to_string("/proc/self/status");
    status.is_ok_and(|status| status.contains("\nUid:\t0\t"))
}

fn optimised(bench: &Bench) -> Command {
    let (program, first, arguments) = bench.program();
    let first = first.into_iter().map(str::to_owned);
    let words = first.chain(arguments.words.iter().cloned()).collect();
    command(program, &["--release"], &Arguments { words })
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
        assert!(bench.asks_for_help());
        assert_eq!(
            crate::cargo::line(&optimised(&bench)),
            "cargo run --quiet --locked --release --package zookeeper-recipes-benches --bin herd -- \
             --help --contenders 2,10"
        );
        let words = ["bench", "network", "--quick"];
        let line = crate::cargo::line(&optimised(&CommandLine::parse_from(words).bench));
        assert!(line.ends_with("--bin peers -- network --quick"), "{line}");
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
