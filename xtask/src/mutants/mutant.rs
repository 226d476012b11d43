//! The known mistakes of `tests/schedules/mutants.toml`, and how each changes the sources.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use super::source::Source;

/// A known mistake, and what finds it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// What goes wrong, in a sentence.
    why: String,
    pub(crate) detector: Detector,
    /// The file, from the directory of the workspace.
    file: String,
    /// The function, or another item: see [`Source::item`].
    function: String,
    find: String,
    replace: String,
    /// Changes elsewhere that belong to the mistake.
    #[serde(default)]
    also: Vec<Also>,
}

/// What finds a mistake. Either is enough.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Detector {
    /// The arguments of `cargo test`.
    pub(crate) test: Option<String>,
    /// The recipe whose seeds find it.
    pub(crate) seeds: Option<String>,
}

/// One more change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Also {
    /// The mutant's, if not given.
    file: Option<String>,
    /// The mutant's, if not given.
    function: Option<String>,
    find: String,
    replace: String,
}

/// The source files of a workspace that mutants change.
#[derive(Debug)]
pub(crate) struct Sources {
    workspace: PathBuf,
    read: BTreeMap<PathBuf, Source>,
}

impl Sources {
    pub(crate) fn of(workspace: &Path) -> Sources {
        let workspace = workspace.to_owned();
        let read = BTreeMap::new();
        Sources { workspace, read }
    }

    fn read(&mut self, file: &str) -> anyhow::Result<&Source> {
        match self.read.entry(self.workspace.join(file)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let text = fs::read_to_string(entry.key())?;
                Ok(entry.insert(Source::new(text)?))
            }
        }
    }
}

/// One change of one file.
#[derive(Debug, Clone, Copy)]
struct Edit<'m> {
    file: &'m str,
    function: &'m str,
    find: &'m str,
    replace: &'m str,
}

/// Reads the mutants of a workspace.
///
/// The call fails if two have the same name, or if nothing finds one.
pub(crate) fn read(workspace: &Path) -> anyhow::Result<Vec<Mutant>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        mutant: Vec<Mutant>,
    }

    let path = workspace.join("tests/schedules/mutants.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let file: File = toml::from_str(&text).with_context(|| format!("cannot parse {path:?}"))?;
    for pair in file.mutant.windows(2) {
        let [before, after] = [&pair[0].name, &pair[1].name];
        ensure!(before < after, "mutant {after} stands after {before}");
    }
    for Mutant {
        name,
        why,
        detector,
        ..
    } in &file.mutant
    {
        let is_found = detector.test.is_some() || detector.seeds.is_some();
        ensure!(is_found, "mutant {name} names neither a test nor seeds");
        ensure!(
            why.ends_with('.'),
            "mutant {name} does not say why in a sentence"
        );
    }
    Ok(file.mutant)
}

impl Mutant {
    /// The files that the mistake changes, and their texts with it.
    ///
    /// The call fails if a change has not exactly one place, or if its result cannot be parsed.
    pub(crate) fn texts(&self, sources: &mut Sources) -> anyhow::Result<BTreeMap<PathBuf, String>> {
        let mut files: BTreeMap<&str, Vec<Edit<'_>>> = BTreeMap::new();
        for edit in self.edits() {
            files.entry(edit.file).or_default().push(edit);
        }
        let mut texts = BTreeMap::new();
        for (file, edits) in files {
            let text = sources
                .read(file)
                .and_then(|source| changed(source, &edits));
            let text =
                text.with_context(|| format!("mutant {} does not apply to {file}", self.name));
            texts.insert(sources.workspace.join(file), text?);
        }
        Ok(texts)
    }

    fn edits(&self) -> impl Iterator<Item = Edit<'_>> {
        let first = Edit {
            file: &self.file,
            function: &self.function,
            find: &self.find,
            replace: &self.replace,
        };
        let also = self.also.iter().map(move |also| Edit {
            file: also.file.as_deref().unwrap_or(first.file),
            function: also.function.as_deref().unwrap_or(first.function),
            find: &also.find,
            replace: &also.replace,
        });
        [first].into_iter().chain(also)
    }
}

/// The text of a file with these changes, none of which sees another one.
fn changed(source: &Source, edits: &[Edit<'_>]) -> anyhow::Result<String> {
    let text = source.text.as_str();
    let mut changes = Vec::new();
    for edit in edits {
        let place = edit.place(source)?;
        changes.push(edit.change(text, place));
    }
    changes.sort_by_key(|(place, _)| place.start);
    let mut changed = String::new();
    let mut from = 0;
    for (place, replace) in changes {
        ensure!(
            from <= place.start,
            "two changes meet in line {}",
            source.line(place.start)
        );
        changed.push_str(&text[from..place.start]);
        changed.push_str(&replace);
        from = place.end;
    }
    changed.push_str(&text[from..]);
    syn::parse_file(&changed).context("the result is no Rust")?;
    Ok(changed)
}

impl Edit<'_> {
    /// The only place of the text that this change replaces.
    fn place(&self, source: &Source) -> anyhow::Result<Range<usize>> {
        let Edit { function, find, .. } = self;
        let item = source.item(function).with_context(|| {
            let nearest = source.nearest_line(&(0..source.text.len()), find);
            format!("{find:?} has no function ({nearest})")
        })?;
        match &source.places(&item, find)[..] {
            [place] => Ok(place.clone()),
            [] => bail!(
                "{function:?} has no {find:?} ({})",
                source.nearest_line(&item, find)
            ),
            places => {
                let lines: Vec<usize> = places.iter().map(|it| source.line(it.start)).collect();
                bail!("{function:?} has {find:?} in each of the lines {lines:?}")
            }
        }
    }

    /// The text that goes, and the text that comes in its place.
    ///
    /// The lines after the first are indented as the line that the place begins in. If nothing
    /// comes, and the place takes whole lines, the lines go.
    fn change(&self, text: &str, place: Range<usize>) -> (Range<usize>, String) {
        let line = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
        let before = &text[line..place.start];
        let end = text[place.end..].find('\n');
        let end = end.map_or(text.len(), |at| place.end + at + 1);
        if self.replace.is_empty()
            && before.trim().is_empty()
            && text[place.end..end].trim().is_empty()
        {
            return (line..end, String::new());
        }
        let indentation = before.len() - before.trim_start().len();
        let separator = format!("\n{}", &before[..indentation]);
        let replace = self.replace.replace('\n', &separator);
        (place, replace.replace(&format!("{separator}\n"), "\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
struct Grant;

impl Grant {
    /// Calls `end(self.state, now)`.
    fn release(&mut self) {
        // The lease counts from here.
        self.state
            .end(now); // It ends.
        log();
    }
}

impl Lock {
    fn release(&mut self) {
        log();
    }
}

fn log() {}
";

    /// The text with this change, or why it has no place.
    fn change(function: &str, find: &str, replace: &str) -> Result<String, String> {
        let edit = Edit {
            file: "",
            function,
            find,
            replace,
        };
        let source = Source::new(TEXT.to_owned()).expect("it is Rust");
        changed(&source, &[edit]).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn place_is_found_whatever_lines_and_comments_are_between_its_tokens() {
        let text = change(
            "Grant::release",
            "self.state.end(now);\nlog();",
            "if true {\n    log();\n}",
        );
        let expected = TEXT.replace(
            "self.state\n            .end(now); // It ends.\n        log();",
            "if true {\n            log();\n        }",
        );
        assert_eq!(text, Ok(expected));
    }

    #[test]
    fn change_to_nothing_takes_whole_lines_if_it_has_them_alone() {
        let text = change("Lock::release", "log();", "");
        let lines = "impl Lock {\n    fn release(&mut self) {\n";
        let expected = TEXT.replace(&format!("{lines}        log();\n"), lines);
        assert_eq!(text, Ok(expected));
        let text = change("log", "log()", "log<T>()");
        assert_eq!(text, Ok(TEXT.replace("fn log()", "fn log<T>()")));
    }

    #[test]
    fn change_without_a_place_names_the_likest_line() {
        let error = |function, find| change(function, find, "").expect_err("it has no place");
        assert_eq!(
            error("Grant::release", "self.stated.end(now)"),
            r#""Grant::release" has no "self.stated.end(now)" (nearest is line 8: self.state)"#
        );
        assert_eq!(
            error("", "log();"),
            r#""" has "log();" in each of the lines [10, 16]"#
        );
        assert_eq!(
            error("Grant::released", "self.end(now)"),
            "\"self.end(now)\" has no function (nearest is line 9: .end(now); // It ends.): \
             no item is named \"Grant::released\" (nearest is line 5: Grant::release)"
        );
        assert_eq!(
            error("release", "self.end(now)"),
            "\"self.end(now)\" has no function (nearest is line 9: .end(now); // It ends.): \
             several items are named \"release\": Grant::release, Lock::release"
        );
    }

    #[test]
    fn change_must_leave_rust() {
        let error = change("log", "{}", "{").expect_err("it is no Rust");
        assert!(error.starts_with("the result is no Rust"), "{error}");
    }
}
