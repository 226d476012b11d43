//! `cargo xtask jepsen`: a set that a lock guards, under pauses and partitions.

use anyhow::ensure;

use crate::bench::{Arguments, is_root_on_linux};
use crate::cargo::run as run_command;
use crate::install;
use crate::workload::program;

/// Installs the servers and the libraries, and runs the workload, optimised.
///
/// # Errors
///
/// The workload fails, or this process has no right to make a network.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !arguments.ask_for_help() {
        ensure!(
            is_root_on_linux(),
            "jepsen wants Linux and root. It was not run."
        );
        install::run()?;
        install::run_peers();
    }
    run_command(&mut program("jepsen", arguments))
}
