//! `cargo xtask jepsen`: a set that a lock guards, under pauses and partitions.

use crate::bench::{Arguments, is_root_on_linux};
use crate::cargo::{cargo, run as run_command};
use crate::install;

/// Installs the servers and the libraries, and runs the workload, optimised.
///
/// Without the right to make a network, the workload is not run.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !is_root_on_linux() {
        println!("jepsen wants Linux and root. It was not run.");
        return Ok(());
    }
    install::run()?;
    install::run_peers();
    let words = ["run", "--quiet", "--release", "--locked", "--package"];
    let mut command = cargo(&words);
    command.args(["zookeeper-recipes-jepsen", "--bin", "jepsen", "--"]);
    run_command(command.args(&arguments.words))
}
