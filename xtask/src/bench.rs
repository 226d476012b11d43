//! `cargo xtask bench`: the cost of the recipes, measured on a real server, in reports.

use std::process::Command;

use crate::cargo::{cargo, run as run_command};
use crate::install;

const PACKAGE: &str = "zookeeper-recipes-benches";

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
}

/// The arguments of a program of the benches.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to the program, which explains them after --help.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// Installs the server and the libraries that the bench needs, and runs the bench, optimised.
pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    install::run()?;
    if matches!(bench, Bench::Peers(_)) {
        install::run_peers();
    }
    run_command(&mut command(bench))
}

fn command(bench: &Bench) -> Command {
    let (program, arguments) = match bench {
        Bench::Herd(arguments) => ("herd", arguments),
        Bench::Queue(arguments) => ("queue", arguments),
        Bench::Embedded(arguments) => ("embedded", arguments),
        Bench::Peers(arguments) => ("peers", arguments),
    };
    let mut command = cargo(&["run", "--quiet", "--release", "--locked"]);
    command.args(self::program(program)).args(&arguments.words);
    command
}

/// How cargo is told to run a program of the benches; the program's own arguments follow.
pub(crate) fn program(name: &str) -> [&str; 5] {
    ["--package", PACKAGE, "--bin", name, "--"]
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cargo::line;

    #[derive(Parser)]
    struct CommandLine {
        #[command(subcommand)]
        bench: Bench,
    }

    #[test]
    fn arguments_reach_the_bench() {
        let run_by = |words: &[&str]| {
            let words = ["bench"].iter().chain(words);
            line(&command(&CommandLine::parse_from(words).bench))
        };
        let herd = "cargo run --quiet --release --locked --package zookeeper-recipes-benches \
                    --bin herd --";
        assert_eq!(run_by(&["herd"]), herd);
        assert_eq!(
            run_by(&["herd", "--help", "--contenders", "2,10"]),
            format!("{herd} --help --contenders 2,10")
        );
        assert!(run_by(&["peers", "--quick"]).ends_with("--bin peers -- --quick"));
    }
}
