//! kazoo, in a virtual environment of the project's own.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::cargo::{root, run, target};

/// Names a Python that has kazoo, instead of the Python in the virtual environment.
const VARIABLE: &str = "KAZOO_PYTHON";

/// Prints the installed version in the form of the requirements.
const VERSION: &str = "from importlib.metadata import version; print('kazoo==' + version('kazoo'))";

/// The one dependency, with its version.
fn requirements() -> PathBuf {
    root().join("tests/interop/python/requirements.txt")
}

/// Installs kazoo in the version that the project pins, unless that is installed.
///
/// Does nothing if the environment names a Python to use instead.
pub(crate) fn install() -> anyhow::Result<()> {
    if env::var_os(VARIABLE).is_some_and(|python| !python.is_empty()) {
        return Ok(());
    }
    let requirements = requirements();
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {requirements:?}"))?;
    let environment = target().join("kazoo");
    let python = environment.join("bin/python");
    let installed = Command::new(&python)
        .args(["-c", VERSION])
        .stderr(Stdio::null())
        .output();
    if installed.is_ok_and(|said| said.stdout.trim_ascii() == wanted.trim().as_bytes()) {
        return Ok(());
    }
    println!(
        "Installing {} into {}",
        wanted.trim(),
        environment.display()
    );
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&environment))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&requirements))
}
