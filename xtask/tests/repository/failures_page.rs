//! The page on failures names tests that exist.

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::{root, sources};

const PAGE: &str = include_str!("../../../crates/core/src/docs/failures.md");

/// The place of a test if the page names none.
const DEFAULT_PLACE: &str = "tests/faults";

/// The last cell of each row, without the heading, of each table that says what shows it.
fn cells() -> impl Iterator<Item = &'static str> {
    let mut is_shown = false;
    let last_cells = PAGE.lines().map(|line| {
        let row = line.strip_prefix('|')?.trim_end_matches('|');
        Some(row.rsplit('|').next().unwrap_or(row).trim())
    });
    let shown = last_cells.map(move |cell| {
        is_shown = match cell {
            None => false,
            Some(cell) => is_shown || cell == "shown by",
        };
        cell.filter(|_| is_shown)
    });
    shown
        .flatten()
        .filter(|cell| *cell != "shown by" && !cell.starts_with("---"))
}

fn names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The parts of a cell, each with the place of its tests.
fn by_place(cell: &str) -> Vec<(&str, &str)> {
    cell.split_inclusive(')')
        .map(|part| match part.split_once('(') {
            Some((names, place)) => (names, place.trim_end_matches(')')),
            None => (part, DEFAULT_PLACE),
        })
        .collect()
}

fn code(directory: &Path) -> Result<String, Box<dyn Error>> {
    let texts = sources(directory)?.into_iter().map(fs::read_to_string);
    Ok(texts.collect::<Result<_, _>>()?)
}

#[test]
fn every_fault_is_shown_by_a_test_that_is_there() -> Result<(), Box<dyn Error>> {
    let mut faults = 0;
    for cell in cells() {
        assert!(!names(cell).is_empty(), "no test is named:{cell}");
        for (part, place) in by_place(cell) {
            let code = code(&root().join(place))?;
            for name in names(part) {
                assert!(
                    code.contains(&format!("fn {name}(")),
                    "{place} has no {name}"
                );
            }
        }
        faults += 1;
    }
    assert!(faults > 20, "{faults} rows were found");
    Ok(())
}
