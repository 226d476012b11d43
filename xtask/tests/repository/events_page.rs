//! The page on events lists each event that the crates emit, with its level and its fields.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{root, sources};

const PAGE: &str = include_str!("../../../crates/core/src/docs/events.md");

/// The ports of operators and the server of tests have events of their own.
const NOT_ON_THE_PAGE: [&str; 2] = ["http", "simulation"];

/// The crate whose table leaves out the fields that most of its events have.
const WITH_COMMON_FIELDS: &str = "crates/assignment/src";
const COMMON_FIELDS: [&str; 2] = ["path", "worker"];

const LEVELS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];

/// The level and the fields of an event.
type Shape = (String, BTreeSet<String>);

/// The source files of the crates that a service uses.
fn services() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in root().join("crates").read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        if !NOT_ON_THE_PAGE.iter().any(|other| name == *other) {
            found.extend(sources(&entry.path().join("src"))?);
        }
    }
    Ok(found)
}

/// The arguments of a macro, from the text behind its opening bracket.
fn arguments(text: &str) -> Vec<String> {
    let (mut depth, mut in_text, mut arguments) = (0, false, vec![String::new()]);
    for character in text.chars() {
        match character {
            '"' => in_text = !in_text,
            '(' | '[' | '{' if !in_text => depth += 1,
            ')' | ']' | '}' if !in_text && depth == 0 => break,
            ')' | ']' | '}' if !in_text => depth -= 1,
            ',' if !in_text && depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        arguments.last_mut().expect("it has one").push(character);
    }
    let arguments = arguments.iter().map(|argument| argument.trim().to_owned());
    arguments.filter(|argument| !argument.is_empty()).collect()
}

/// The name of a field, in one of the ways in which `tracing` takes it.
fn field(argument: &str) -> String {
    let name = argument.split('=').next().unwrap_or_default();
    name.trim().trim_start_matches(['%', '?']).to_owned()
}

/// The events of a file by their names.
fn emitted(path: &Path) -> Result<Vec<(String, Shape)>, Box<dyn Error>> {
    let code = fs::read_to_string(path)?;
    let mut events = Vec::new();
    for level in LEVELS {
        for (at, call) in code.match_indices(&format!("tracing::{level}!(")) {
            let arguments = arguments(&code[at + call.len()..]);
            let place = format!("{}: {arguments:?}", path.display());
            let (name, fields) = arguments.split_last().ok_or_else(|| place.clone())?;
            let name = name.trim_matches('"').to_owned();
            let target = fields.iter().find_map(|it| it.strip_prefix("target:"));
            let target = target.map(str::trim);
            assert!(
                matches!(target, Some("TARGET" | "\"zookeeper_recipes\"")),
                "an event has another target: {place}"
            );
            let is_option = |it: &str| ["target:", "parent:"].iter().any(|of| it.starts_with(of));
            let fields = fields.iter().filter(|it| !is_option(it));
            let mut fields: BTreeSet<String> = fields.map(|it| field(it)).collect();
            if path.to_string_lossy().contains(WITH_COMMON_FIELDS) {
                fields.retain(|name| !COMMON_FIELDS.contains(&name.as_str()));
            }
            events.push((name, (level.to_owned(), fields)));
        }
    }
    // The macro of the assignment adds the common fields.
    for (at, call) in code.match_indices("report!(") {
        let arguments = arguments(&code[at + call.len()..]);
        let [_, level, name, fields @ ..] = &arguments[..] else {
            return Err(format!("{}: {arguments:?}", path.display()).into());
        };
        let fields = fields.iter().map(|it| field(it)).collect();
        events.push((name.trim_matches('"').to_owned(), (level.clone(), fields)));
    }
    Ok(events)
}

fn names(cell: &str) -> BTreeSet<String> {
    let names = cell.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// The rows of the tables of events.
fn listed() -> BTreeMap<String, Shape> {
    let mut listed: BTreeMap<String, Shape> = BTreeMap::new();
    let mut is_of_events = false;
    for row in PAGE.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, event, level, fields, ..] = cells[..] else {
            is_of_events = false;
            continue;
        };
        is_of_events |= event == "event";
        if !is_of_events || event == "event" || event.starts_with('-') {
            continue;
        }
        let fields = match fields.strip_prefix("as `") {
            Some(other) => listed[other.trim_end_matches('`')].1.clone(),
            None => names(fields),
        };
        let event = event.trim_matches('`').to_owned();
        let before = listed.insert(event.clone(), (level.to_owned(), fields));
        assert!(before.is_none(), "{event} is listed twice");
    }
    listed
}

#[test]
fn page_lists_each_event_with_its_level_and_its_fields() -> Result<(), Box<dyn Error>> {
    let mut events = BTreeMap::new();
    for path in services()? {
        for (name, shape) in emitted(&path)? {
            let shape = (shape, path.clone());
            let before = events.insert(name.clone(), shape.clone());
            let same = before.is_none_or(|before: (Shape, PathBuf)| before.0 == shape.0);
            assert!(same, "{name} has two shapes");
        }
    }
    let emitted: BTreeMap<String, Shape> = events
        .into_iter()
        .map(|(name, (shape, _))| (name, shape))
        .collect();
    let listed = listed();
    let names = |of: &BTreeMap<String, Shape>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&listed), names(&emitted));
    assert_eq!(listed, emitted);
    Ok(())
}
