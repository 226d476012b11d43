//! A copy of the workspace that mistakes are put into.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::mutant::{Mutant, Sources};
use crate::cargo::{cargo, root};

/// A copy of the workspace, and what is built of it.
pub(super) struct Copy {
    workspace: PathBuf,
    /// Where the builds are.
    targets: PathBuf,
}

impl Copy {
    /// Makes the copy like the workspace. What was built of it before is kept.
    pub(super) fn new() -> anyhow::Result<Copy> {
        let targets = root().join("target/mutants");
        let workspace = targets.join("workspace");
        copy_tree(&root(), &workspace)?;
        Ok(Copy { workspace, targets })
    }

    /// The changes of each of these mutants, by their files.
    ///
    /// The call fails if some mutants do not apply. The error names each.
    pub(super) fn texts(&self, mutants: &[Mutant]) -> anyhow::Result<Vec<Texts>> {
        all_texts(mutants, &self.workspace)
    }

    /// A call of cargo in the copy. Each of the `targets` has builds of its own.
    pub(super) fn cargo(&self, target: &str, opt_level: &str, arguments: &[&str]) -> Command {
        let mut command = cargo(&["--config", r#"profile.release.package."*".opt-level=1"#]);
        command
            .args(arguments)
            .current_dir(&self.workspace)
            .env("CARGO_TARGET_DIR", self.targets.join(target))
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", opt_level);
        command
    }
}

/// Files and their texts.
pub(super) type Texts = BTreeMap<PathBuf, String>;

/// The files that each of these mutants changes, with their texts.
///
/// The call fails if some mutants do not apply. The error names each.
pub(super) fn all_texts(mutants: &[Mutant], workspace: &Path) -> anyhow::Result<Vec<Texts>> {
    let mut sources = Sources::of(workspace);
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for mutant in mutants {
        match mutant.texts(&mut sources) {
            Ok(texts) => all.push(texts),
            Err(error) => errors.push(format!("{error:#}")),
        }
    }
    if !errors.is_empty() {
        bail!("{}", errors.join("\n"));
    }
    Ok(all)
}

/// Gives these files these texts. Returns the texts that they had.
pub(super) fn exchange(texts: Texts) -> anyhow::Result<Texts> {
    let mut before = Texts::new();
    for (path, text) in texts {
        before.insert(path.clone(), fs::read_to_string(&path)?);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(before)
}

/// Makes the files of a copy like those of the workspace. Files that are alike are left, so that
/// cargo does not build them again.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let files = tree(from)?;
    for file in tree(to)?.iter().filter(|file| !files.contains(file)) {
        fs::remove_file(to.join(file))?;
    }
    for file in files {
        let (source, copy) = (from.join(&file), to.join(&file));
        let text = fs::read(&source);
        let text = text.with_context(|| format!("cannot read {}", source.display()))?;
        if fs::read(&copy).is_ok_and(|before| before == text) {
            continue;
        }
        fs::create_dir_all(copy.parent().unwrap_or(to))?;
        fs::copy(&source, &copy).with_context(|| format!("cannot copy {}", source.display()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_is_like_the_workspace_and_files_that_are_alike_are_left() {
        let directory = std::env::temp_dir().join(format!("mutants-{}", std::process::id()));
        let (from, to) = (directory.join("from"), directory.join("to"));
        let write = |file: PathBuf, text: &str| {
            fs::create_dir_all(file.parent().expect("a directory")).expect("it is created");
            fs::write(file, text).expect("it is written");
        };
        write(from.join("a/same.rs"), "same");
        write(from.join("a/other.rs"), "other");
        write(from.join("target/built"), "built");
        copy_tree(&from, &to).expect("it is copied");
        let written = |file: &str| fs::metadata(to.join(file)).and_then(|it| it.modified());
        let before = written("a/same.rs").expect("it is copied");
        write(to.join("a/other.rs"), "a mistake");
        write(to.join("a/stale.rs"), "stale");
        copy_tree(&from, &to).expect("it is copied");
        assert_eq!(
            fs::read(to.join("a/other.rs")).expect("it is copied"),
            b"other"
        );
        assert_eq!(written("a/same.rs").expect("it is copied"), before);
        assert!(!to.join("a/stale.rs").exists() && !to.join("target").exists());
        fs::remove_dir_all(directory).expect("it is removed");
    }
}
