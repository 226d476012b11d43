//! `cargo xtask demo`: one lock, many contenders, four ways to wait, and what each of them costs.

use std::process::Command;

#[cfg(unix)]
use anyhow::Context;

use crate::bench::{self, Arguments};
use crate::cargo::cargo;
#[cfg(unix)]
use crate::cargo::line;
use crate::install;

/// Installs a server if the demo starts one, and becomes the demo.
///
/// The demo takes the place of this process, so that an interrupt reaches the demo itself, which
/// then cleans up. Returns only if that fails.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if needs_a_server(&arguments.words) {
        install::run()?;
    }
    become_command(command(arguments))
}

#[cfg(unix)]
fn become_command(mut command: Command) -> anyhow::Result<()> {
    use std::os::unix::process::CommandExt;

    Err(command.exec()).with_context(|| format!("cannot run {}", line(&command)))
}

/// Windows interrupts all processes of the console. This process then ends before the demo.
#[cfg(not(unix))]
fn become_command(mut command: Command) -> anyhow::Result<()> {
    crate::cargo::run(&mut command)
}

fn needs_a_server(words: &[String]) -> bool {
    let is_help = |word: &String| word == "--help" || word == "-h";
    words.iter().any(|word| word == "--server") && !words.iter().any(is_help)
}

/// Not optimised: the holds and the server decide how long it takes, and it is built sooner.
fn command(arguments: &Arguments) -> Command {
    let mut command = cargo(&["run", "--quiet", "--locked"]);
    command.args(bench::program("demo")).args(&arguments.words);
    command
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cargo::line;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct CommandLine {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &[&str]) -> Arguments {
        CommandLine::parse_from(["demo"].iter().chain(words)).arguments
    }

    #[test]
    fn arguments_reach_the_demo() {
        let run_by = |words: &[&str]| line(&command(&arguments(words)));
        let demo = "cargo run --quiet --locked --package zookeeper-recipes-benches --bin demo --";
        assert_eq!(run_by(&[]), demo);
        assert_eq!(
            run_by(&["--contenders", "3", "--help"]),
            format!("{demo} --contenders 3 --help")
        );
    }

    #[test]
    fn server_is_installed_if_it_is_asked_for() {
        let needs = |words: &[&str]| needs_a_server(&arguments(words).words);
        assert!(needs(&["--contenders", "3", "--server"]));
        assert!(!needs(&[]));
        assert!(!needs(&["--hold", "1s", "--connect", "zk1:2181"]));
        assert!(!needs(&["--server", "--help"]));
    }
}
