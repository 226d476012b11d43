//! kazoo, in a virtual environment of the project's own, with its tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::cargo::{root, run, target};

/// Names a Python that has kazoo, instead of the Python in the virtual environment.
const VARIABLE: &str = "KAZOO_PYTHON";

/// Prints the installed version in the form of the requirements.
const VERSION: &str = "from importlib.metadata import version; print('kazoo==' + version('kazoo'))";

/// The one dependency, with its version.
fn requirements() -> PathBuf {
    python_file("requirements.txt")
}

fn python_file(name: &str) -> PathBuf {
    root().join("tests/interop/python").join(name)
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
    if !installed.is_ok_and(|said| said.stdout.trim_ascii() == wanted.trim().as_bytes()) {
        println!(
            "Installing {} into {}",
            wanted.trim(),
            environment.display()
        );
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment))?;
        run(&mut pip(&python, "install", &requirements))?;
    }
    install_tests(&environment, &python)
}

/// Installs kazoo's sources, which have its tests, and what the tests need, unless they are there.
fn install_tests(environment: &Path, python: &Path) -> anyhow::Result<()> {
    let sources = environment.join("sources");
    if sources.exists() {
        return Ok(());
    }
    run(&mut pip(
        python,
        "install",
        &python_file("suite-requirements.txt"),
    ))?;
    let fresh = environment.join("fresh");
    let mut download = pip(python, "download", &requirements());
    run(download
        .args(["--no-deps", "--no-binary", ":all:", "--dest"])
        .arg(&fresh))?;
    let archives = fs::read_dir(&fresh).with_context(|| format!("cannot read {fresh:?}"))?;
    for archive in archives {
        run(Command::new(python)
            .args(["-m", "tarfile", "--extract"])
            .args([&archive?.path(), &fresh]))?;
    }
    fs::rename(&fresh, &sources).with_context(|| format!("cannot keep {fresh:?}"))
}

fn pip(python: &Path, command: &str, requirements: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", command, "--quiet", "--requirement"])
        .arg(requirements);
    pip
}
