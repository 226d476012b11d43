//! `cargo xtask structure`: no circle between source files.
//!
//! An arrow leads from a file to each file that defines an item that the first file names. The name
//! is in a `use`, in a path inside its code, or in the arguments of a macro. A name that a module
//! re-exports counts for the file that defines it. A `mod` is no arrow, and neither is a re-export.
//! Test code and doc comments do not count.
//!
//! The tables of `ARCHITECTURE.md` that list the files of one acquisition and of one release are held
//! to the code.

mod attributes;
mod circles;
mod modules;
mod resolve;
mod source;
#[cfg(test)]
mod tests;
mod walks;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::bail;

use self::circles::circles;
use self::modules::{Modules, Read};
use crate::cargo::{packages, root};

/// Checks every target of the workspace, and says all that is wrong.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = root();
    let read = |path: &Path| fs::read_to_string(root.join(path));
    let mut findings = Findings::default();
    for package in packages()?
        .iter()
        .filter(|package| package.is_of_workspace())
    {
        for target in &package.targets {
            let path = target.src_path.strip_prefix(&root);
            let path = path.unwrap_or(&target.src_path);
            findings.look_at(path, &read)?;
        }
    }
    let text = findings.text();
    if !text.is_empty() {
        bail!("{text}");
    }
    let files = findings.files.len();
    println!("{files} files, no circle");
    Ok(())
}

/// What is wrong. A file may be part of several targets, and is reported once.
#[derive(Debug, Default)]
struct Findings {
    files: BTreeSet<String>,
    circles: BTreeSet<String>,
    /// What is wrong with the tables of files that one acquisition and one release run through.
    walks: Vec<String>,
}

impl Findings {
    /// Checks the crate with this root file.
    fn look_at(&mut self, root: &Path, read: Read<'_>) -> anyhow::Result<()> {
        let modules = Modules::read(root, read)?;
        let files = modules.files.iter();
        self.files
            .extend(files.map(|file| file.display().to_string()));
        let arrows = Arrows::of(&modules);
        if root == Path::new(walks::CORE) {
            let architecture = read(Path::new(walks::ARCHITECTURE))?;
            self.walks = walks::wrong(&architecture, &modules.files, &arrows.targets());
        }
        for circle in circles(&arrows.targets()) {
            self.circles.insert(arrows.between(&circle, &modules));
        }
        Ok(())
    }

    /// All of it as lines; empty if nothing is wrong.
    fn text(&self) -> String {
        let mut parts = Vec::new();
        for circle in &self.circles {
            parts.push(format!("a circle between files:\n{circle}"));
        }
        parts.extend(self.walks.iter().cloned());
        parts.join("\n")
    }
}

/// Which file takes which names from which other file.
#[derive(Debug, Default)]
struct Arrows {
    names: BTreeMap<(usize, usize), BTreeSet<String>>,
}

impl Arrows {
    fn of(modules: &Modules) -> Arrows {
        let mut arrows = Arrows::default();
        for (place, module) in modules.modules.iter().enumerate() {
            for path in &module.taken {
                // The path may continue behind the item, to a variant or to a function of it.
                let mut beginnings = (1..=path.len()).map(|end| &path[..end]);
                let found = beginnings.find_map(|path| {
                    let file = modules.defining_file(place, path)?;
                    Some((file, path.last()?.clone()))
                });
                if let Some((file, name)) = found.filter(|(file, _)| *file != module.file) {
                    let names = arrows.names.entry((module.file, file)).or_default();
                    names.insert(name);
                }
            }
        }
        arrows
    }

    /// The files to which each file's arrows lead.
    fn targets(&self) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut targets: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for &(from, to) in self.names.keys() {
            targets.entry(from).or_default().insert(to);
        }
        targets
    }

    /// The arrows of a circle, a line each.
    fn between(&self, circle: &BTreeSet<usize>, modules: &Modules) -> String {
        let inside = self
            .names
            .iter()
            .filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let lines = inside.map(|((from, to), names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let file = |place: &usize| modules.files[*place].display();
            format!("  {} -> {}: {}", file(from), file(to), names.join(", "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
