//! The known mistakes of `tests/schedules/mutants.toml`, and how each changes the sources.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use super::source::Source;

/// Files, from the directory of the workspace, and their texts.
pub(crate) type Texts = BTreeMap<PathBuf, String>;

/// The variable of the environment that names the mutant which a process runs.
pub(crate) const VARIABLE: &str = "ZOOKEEPER_RECIPES_MUTANT";

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

/// The place of a change, and the text that comes there.
type Change = (Range<usize>, String);

/// The changes of a file, by the bytes of the body that each is in, and by the mutant.
type Bodies<'m> = BTreeMap<(usize, usize), BTreeMap<&'m str, Vec<Change>>>;

/// One change of one file, as it is written down.
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

/// The files that these mutants change, with the texts of the workspace that has all of them.
/// [`VARIABLE`] chooses the mutant at run time.
///
/// The call fails if some changes have not exactly one place, which must be in the body of a
/// function, or if a result cannot be parsed. The error names each.
pub(crate) fn switched(mutants: &[Mutant], workspace: &Path) -> anyhow::Result<Texts> {
    let mut sources = Sources::of(workspace);
    let mut files: BTreeMap<&str, Bodies<'_>> = BTreeMap::new();
    let mut errors = Vec::new();
    for mutant in mutants {
        for edit in mutant.edits() {
            match sources.read(edit.file).and_then(|it| edit.change(it)) {
                Ok((body, change)) => {
                    let bodies = files.entry(edit.file).or_default();
                    let changes = bodies.entry((body.start, body.end)).or_default();
                    changes.entry(&mutant.name).or_default().push(change);
                }
                Err(error) => {
                    let (name, file) = (&mutant.name, edit.file);
                    errors.push(format!("mutant {name} does not apply to {file}: {error:#}"));
                }
            }
        }
    }
    let mut texts = Texts::new();
    for (file, bodies) in files {
        match sources.read(file).and_then(|it| with_switches(it, bodies)) {
            Ok(text) => {
                texts.insert(file.into(), text);
            }
            Err(error) => errors.push(format!("{file}: {error:#}")),
        }
    }
    ensure!(errors.is_empty(), "{}", errors.join("\n"));
    Ok(texts)
}

/// The text of a file in which each of these bodies has each of its mutants beside it.
fn with_switches(source: &Source, bodies: Bodies<'_>) -> anyhow::Result<String> {
    let mut switches = Vec::new();
    for ((start, end), mutants) in bodies {
        let mut switch = String::from("{\n");
        for (name, changes) in mutants {
            let body = changed(source, &(start..end), changes);
            let body = body.with_context(|| format!("mutant {name}"))?;
            switch += &format!("if {} {body} else ", is_chosen(name));
        }
        switch += &format!("{}\n}}", &source.text[start..end]);
        switches.push((start..end, switch));
    }
    replaced(source, &(0..source.text.len()), switches)
}

/// An expression that is true in a process that runs this mutant.
fn is_chosen(name: &str) -> String {
    format!(
        "{{ static IS: ::std::sync::OnceLock<bool> = ::std::sync::OnceLock::new(); \
         *IS.get_or_init(|| ::std::env::var_os({VARIABLE:?}).is_some_and(|it| it == {name:?})) }}"
    )
}

/// The text of a body with these changes.
fn changed(source: &Source, body: &Range<usize>, changes: Vec<Change>) -> anyhow::Result<String> {
    let text = replaced(source, body, changes)?;
    syn::parse_str::<syn::Block>(&text).context("the result is no Rust")?;
    Ok(text)
}

/// The text of these bytes with these changes, none of which sees another one.
fn replaced(
    source: &Source,
    within: &Range<usize>,
    mut changes: Vec<Change>,
) -> anyhow::Result<String> {
    changes.sort_by_key(|(place, _)| place.start);
    let mut text = String::new();
    let mut from = within.start;
    for (place, replace) in changes {
        ensure!(
            from <= place.start,
            "two changes meet in line {}",
            source.line(place.start)
        );
        text.push_str(&source.text[from..place.start]);
        text.push_str(&replace);
        from = place.end;
    }
    text.push_str(&source.text[from..within.end]);
    Ok(text)
}

impl Mutant {
    /// The files that it changes, from the directory of the workspace.
    pub(crate) fn files(&self) -> BTreeSet<&str> {
        self.edits().map(|edit| edit.file).collect()
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

impl Edit<'_> {
    /// The body that it changes, and what changes.
    fn change(&self, source: &Source) -> anyhow::Result<(Range<usize>, Change)> {
        let place = self.place(source)?;
        let body = source.body(&place).with_context(|| {
            let find = self.find;
            format!("{find:?} is in no body that can be chosen at run time")
        })?;
        Ok((body, self.replacement(&source.text, place)))
    }

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
    fn replacement(&self, text: &str, place: Range<usize>) -> Change {
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
#[path = "../../tests/unit/mutant.rs"]
mod tests;
