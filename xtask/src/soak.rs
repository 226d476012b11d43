//! `cargo xtask soak`: processes that hold every recipe on an ensemble that fails.

use crate::bench::Arguments;
use crate::cargo::run as run_command;
use crate::install;
use crate::workload::program;

/// Installs the servers, and runs the processes, optimised.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !arguments.ask_for_help() {
        install::run()?;
    }
    run_command(&mut program("soak", arguments))
}
