//! What was found of a copy of the workspace, so that a run that was stopped continues.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::Context;

use crate::processes::lock;

/// A file with a line for each verdict: a name, a tabulator, and what was found.
pub(super) struct Verdicts {
    before: BTreeMap<String, String>,
    file: Mutex<File>,
}

impl Verdicts {
    pub(super) fn read(path: PathBuf) -> anyhow::Result<Verdicts> {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let text = fs::read_to_string(&path)?;
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let before = lines.map(|(name, verdict)| (name.to_owned(), verdict.to_owned()));
        Ok(Verdicts {
            before: before.collect(),
            file: Mutex::new(file),
        })
    }

    /// The verdict of the run before, or else what `judge` says. An error is no verdict.
    pub(super) fn of(
        &self,
        name: &str,
        judge: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<String> {
        if let Some(verdict) = self.before.get(name) {
            return Ok(verdict.clone());
        }
        let verdict = judge()?;
        writeln!(lock(&self.file), "{name}\t{verdict}").context("cannot write the verdict")?;
        Ok(verdict)
    }
}
