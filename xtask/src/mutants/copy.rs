//! A copy of the workspace that mistakes are put into.

use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::mutant::{Mutant, Texts, switched};
use crate::cargo::{cargo, root, target};
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
        let directory = target().join("mutants");
        let (workspace, builds) = (directory.join("workspace"), directory.join("build"));
        copy_tree(&root(), &workspace, &switched(mutants, &root())?)?;
        link_peers(&builds)?;
        let mut programs = Vec::new();
        for (member, targets) in [("", &TARGETS[..]), ("tests/shuttle", &[])] {
            let mut command = cargo(&["test", "--locked", "--no-run"]);
            command
                .args(["--message-format", "json-render-diagnostics"])
                .args(targets)
                .current_dir(workspace.join(member))
                .env("CARGO_TARGET_DIR", &builds)
                .env("RUSTFLAGS", "--cap-lints=allow");
            programs.extend(built_by(&mut command)?);
        }
        programs.retain(Artifact::is_test);
        let simulation = builds.join("debug/simulate").with_extension(EXE_EXTENSION);
        Ok(Copy {
            programs,
            simulation,
        })
    }
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
/// cargo does not build it again.
fn copy_tree(from: &Path, to: &Path, texts: &Texts) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let files = tree(from)?;
    for file in tree(to)?.iter().filter(|file| !files.contains(file)) {
        fs::remove_file(to.join(file))?;
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
        fs::create_dir_all(copy.parent().unwrap_or(to))?;
        fs::copy(&source, &copy)
            .and_then(|_| fs::write(&copy, text))
            .with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
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
