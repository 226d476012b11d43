//! The tests of what the threads of a process share. They are a workspace of their own.

use std::process::Command;

use crate::cargo::{self, target};

/// A call of cargo in that workspace, which builds into the directory of this one.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = cargo::cargo(arguments);
    command
        .current_dir(cargo::root().join("tests/shuttle"))
        .env("CARGO_TARGET_DIR", target());
    command
}
