//! Packages of Python, each in a virtual environment of the project's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::cargo::{run, target};

/// Prints the installed version of a package in the form of the requirements.
const VERSION: &str =
    "import sys, importlib.metadata as m; n = sys.argv[1]; print(n + '==' + m.version(n))";

/// Installs a package in the version that a file of requirements pins, unless that is installed.
///
/// The file has the hash of each archive of that version, so that pip takes no other.
///
/// Returns the directory of the environment.
pub(crate) fn environment(name: &str, requirements: &Path) -> anyhow::Result<PathBuf> {
    let wanted = fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {requirements:?}"))?;
    let wanted = wanted.split_whitespace().next().unwrap_or_default();
    let package = wanted.split("==").next().unwrap_or(wanted);
    let environment = target().join(name);
    let installed = Command::new(python(&environment))
        .args(["-c", VERSION, package])
        .stderr(Stdio::null())
        .output();
    if !installed.is_ok_and(|said| said.stdout.trim_ascii() == wanted.as_bytes()) {
        println!("Installing {wanted} into {}", environment.display());
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment))?;
        run(&mut pip(&environment, "install", requirements))?;
    }
    Ok(environment)
}

pub(crate) fn python(environment: &Path) -> PathBuf {
    environment.join("bin/python")
}

pub(crate) fn pip(environment: &Path, command: &str, requirements: &Path) -> Command {
    let mut pip = Command::new(python(environment));
    pip.args(["-m", "pip", command, "--quiet", "--requirement"])
        .arg(requirements);
    pip
}
