//! kazoo, in a virtual environment of the project's own, with its tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::cargo::{root, run};
use crate::python::{environment, pip, python};

/// Names a Python that has kazoo, instead of the Python in the virtual environment.
const VARIABLE: &str = "KAZOO_PYTHON";

/// The one dependency, with its version.
fn requirements() -> PathBuf {
    python_file("requirements.txt")
}

fn python_file(name: &str) -> PathBuf {
    root().join("tests/interop/python").join(name)
}

/// Installs kazoo in the version that the project pins, unless that is installed.
///
/// The call does nothing if the environment names a Python to use instead.
pub(crate) fn install() -> anyhow::Result<()> {
    if env::var_os(VARIABLE).is_some_and(|python| !python.is_empty()) {
        return Ok(());
    }
    install_tests(&environment("kazoo", &requirements())?)
}

/// Installs kazoo's sources, which have its tests, and what the tests need, unless they are there.
fn install_tests(environment: &Path) -> anyhow::Result<()> {
    let sources = environment.join("sources");
    if sources.exists() {
        return Ok(());
    }
    let needs = python_file("suite-requirements.txt");
    run(&mut pip(environment, "install", &needs))?;
    let fresh = environment.join("fresh");
    let mut download = pip(environment, "download", &requirements());
    run(download
        .args(["--no-deps", "--no-binary", ":all:", "--dest"])
        .arg(&fresh))?;
    let archives = fs::read_dir(&fresh).with_context(|| format!("cannot read {fresh:?}"))?;
    for archive in archives {
        run(Command::new(python(environment))
            .args(["-m", "tarfile", "--extract"])
            .args([&archive?.path(), &fresh]))?;
    }
    fs::rename(&fresh, &sources).with_context(|| format!("cannot keep {fresh:?}"))
}
