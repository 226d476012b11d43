//! `cargo xtask soak`: processes that hold every recipe on an ensemble that fails.

use crate::bench::Arguments;
use crate::cargo::{cargo, run as run_command};
use crate::install;

/// Installs the servers, and runs the processes, optimised.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    install::run()?;
    let words = ["run", "--quiet", "--release", "--locked", "--package"];
    let mut command = cargo(&words);
    command.args(["zookeeper-recipes-soak", "--bin", "soak", "--"]);
    run_command(command.args(&arguments.words))
}
