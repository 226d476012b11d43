//! Calls of cargo, and what cargo says about the workspace.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The directory that cargo builds into.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A call of the cargo that runs this task, in the workspace's directory.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs a command to its end. Its output goes to this task's.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", line(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", line(command));
    }
    Ok(())
}

/// The same command, which leaves the processors to all others, where the system can do that.
pub(crate) fn lowered(command: &Command) -> Command {
    let program = command.get_program();
    let mut lowered = match cfg!(unix) {
        true => Command::new("nice"),
        false => Command::new(program),
    };
    if cfg!(unix) {
        lowered.args(["-n", "19"]).arg(program);
    }
    lowered.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => lowered.env(name, value),
            None => lowered.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        lowered.current_dir(directory);
    }
    lowered
}

/// A command as a person would type it.
pub(crate) fn line(command: &Command) -> String {
    let mut line = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        // Writing to a String does not fail.
        let _ = write!(line, " {}", argument.to_string_lossy());
    }
    line
}

/// A crate of the dependency tree, which includes the workspace's own.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The registry that it comes from; `None` for the workspace's own.
    pub(crate) source: Option<String>,
    /// The registries that it may be published to: none if empty, any if `None`.
    publish: Option<Vec<String>>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) targets: Vec<Target>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev` if only its tests need it.
    kind: Option<String>,
}

impl Dependency {
    pub(crate) fn is_for_tests(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// A part of a package that is compiled by itself: a library, a program, a test, a bench.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    /// Its first file.
    pub(crate) src_path: PathBuf,
}

impl Package {
    pub(crate) fn is_of_workspace(&self) -> bool {
        self.source.is_none()
    }

    /// Whether it is one of the workspace's own crates, and is published.
    pub(crate) fn is_published_here(&self) -> bool {
        self.is_of_workspace() && self.publish.as_ref().is_none_or(|to| !to.is_empty())
    }
}

/// All crates of the dependency tree, for every target and with every feature.
pub(crate) fn packages() -> anyhow::Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }

    let mut command = cargo(&[
        "metadata",
        "--format-version=1",
        "--all-features",
        "--locked",
    ]);
    let output = command.output().context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("cannot read what cargo metadata says")?;
    Ok(metadata.packages)
}
