//! A copy of the workspace that mistakes are put into.

use std::collections::BTreeSet;
use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::mutant::{Mutant, Texts, switched};
use crate::cargo::{cargo, packages, root, run, target};
use crate::test::{Artifact, built_by};

/// What is built: all but what takes long and finds no mistake.
const TARGETS: [&str; 9] = [
    "--workspace",
    "--exclude",
    "xtask",
    "--exclude",
    "zookeeper-recipes-benches",
    "--exclude",
    "zookeeper-recipes-examples",
    "--exclude",
    "zookeeper-recipes-example-services",
];

/// The programs of the tests, built once from a copy of the workspace that has all mutants.
pub(super) struct Copy {
    pub(super) programs: Vec<Artifact>,
    pub(super) simulation: PathBuf,
}

impl Copy {
    /// Makes the copy with these mutants, and builds it. What was built of it before is kept.
    pub(super) fn build(mutants: &[Mutant]) -> anyhow::Result<Copy> {
        let directory = directory();
        copy_workspace(mutants)?;
        link_peers(&directory.join("build"))?;
        let mut programs = Vec::new();
        for (member, targets) in [("", &TARGETS[..]), ("tests/shuttle", &[])] {
            let mut command = cargo_in_copy(&["test", "--locked", "--no-run"], member);
            command.args(["--message-format", "json-render-diagnostics"]);
            programs.extend(built_by(command.args(targets))?);
        }
        programs.retain(Artifact::is_test);
        let simulation = directory.join("build/debug/simulate");
        Ok(Copy {
            programs,
            simulation: simulation.with_extension(EXE_EXTENSION),
        })
    }
}

/// Makes the copy with these mutants, and compiles the crates that have them, but no program.
pub(super) fn check(mutants: &[Mutant]) -> anyhow::Result<()> {
    copy_workspace(mutants)?;
    let mut command = cargo_in_copy(&["check", "--locked", "--lib"], "");
    let files: BTreeSet<&str> = mutants.iter().flat_map(Mutant::files).collect();
    for package in packages()? {
        let directory = package.manifest_path.parent().unwrap_or(Path::new(""));
        let has = |file: &&str| root().join(file).starts_with(directory);
        if files.iter().any(has) {
            command.args(["--package", &package.name]);
        }
    }
    run(&mut command)
}

/// The file of the verdicts on the mutants of this copy.
pub(super) fn verdicts() -> PathBuf {
    directory().join("verdicts.txt")
}

fn directory() -> PathBuf {
    target().join("mutants")
}

/// Makes the copy. If it differs from the one before, the verdicts on that one are deleted.
fn copy_workspace(mutants: &[Mutant]) -> anyhow::Result<()> {
    let texts = switched(mutants, &root())?;
    if copy_tree(&root(), &directory().join("workspace"), &texts)? {
        match fs::remove_file(verdicts()) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// A call of cargo in this member of the copy.
fn cargo_in_copy(arguments: &[&str], member: &str) -> Command {
    let mut command = cargo(arguments);
    command
        .current_dir(directory().join("workspace").join(member))
        .env("CARGO_TARGET_DIR", directory().join("build"))
        .env("RUSTFLAGS", "--cap-lints=allow");
    command
}

/// Lets the tests of the copy find the kazoo that is installed for the workspace.
fn link_peers(builds: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(builds).with_context(|| format!("cannot create {}", builds.display()))?;
    #[cfg(unix)]
    match std::os::unix::fs::symlink(target().join("kazoo"), builds.join("kazoo")) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    Ok(())
}

/// Copies the files of the workspace, and deletes those that the workspace no longer has. A file that
/// `texts` names gets that text instead. A copy that is the same already is not written, so that
/// cargo does not build it again. True if something changed.
fn copy_tree(from: &Path, to: &Path, texts: &Texts) -> anyhow::Result<bool> {
    let mut is_changed = false;
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let files = tree(from)?;
    for file in tree(to)?.iter().filter(|file| !files.contains(file)) {
        fs::remove_file(to.join(file))?;
        is_changed = true;
    }
    for file in files {
        let (source, copy) = (from.join(&file), to.join(&file));
        let text = match texts.get(&file) {
            Some(text) => text.clone().into_bytes(),
            None => {
                let text = fs::read(&source);
                text.with_context(|| format!("cannot read {}", source.display()))?
            }
        };
        if fs::read(&copy).is_ok_and(|before| before == text) {
            continue;
        }
        is_changed = true;
        fs::create_dir_all(copy.parent().unwrap_or(to))?;
        fs::copy(&source, &copy)
            .and_then(|_| fs::write(&copy, text))
            .with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(is_changed)
}

/// The files of a workspace, without what is built, by their paths in it.
pub(super) fn tree(workspace: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(workspace.join(&directory))? {
            let entry = entry?;
            let name = entry.file_name();
            if name == "target" || name == ".git" {
                continue;
            }
            let to = match entry.file_type()?.is_dir() {
                true => &mut directories,
                false => &mut files,
            };
            to.push(directory.join(name));
        }
    }
    Ok(files)
}
