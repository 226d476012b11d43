//! The tables of `ARCHITECTURE.md`: the files that one acquisition and one release run through.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(super) const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// The root file of the crate that the tables are about.
pub(super) const CORE: &str = "crates/core/src/lib.rs";

/// The headings, and the most files that each table may list.
const WALKS: [(&str, usize); 2] = [("## One acquisition", 12), ("## One release", 5)];

/// What is wrong with the tables.
///
/// Each file exists. An earlier file of the table takes something from each file but the first.
pub(super) fn wrong(
    architecture: &str,
    files: &[PathBuf],
    arrows: &BTreeMap<usize, BTreeSet<usize>>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (heading, most) in WALKS {
        let listed = listed(architecture, heading);
        if listed.is_empty() || listed.len() > most {
            let number = listed.len();
            wrong.push(format!(
                "{heading}: {number} files, at least 1 and at most {most}"
            ));
        }
        let mut walked: Vec<usize> = Vec::new();
        for name in listed {
            let path = Path::new("crates/core/src").join(name);
            let Some(place) = files.iter().position(|file| *file == path) else {
                wrong.push(format!("{heading}: there is no file {name}"));
                continue;
            };
            let leads = |from: &usize| arrows.get(from).is_some_and(|to| to.contains(&place));
            if !walked.is_empty() && !walked.iter().any(leads) {
                wrong.push(format!("{heading}: no file before {name} uses it"));
            }
            walked.push(place);
        }
    }
    wrong
}

/// The files in the first column of the table below a heading.
fn listed<'a>(architecture: &'a str, heading: &str) -> Vec<&'a str> {
    let Some((_, below)) = architecture.split_once(heading) else {
        return Vec::new();
    };
    let section = below.lines().take_while(|line| !line.starts_with("## "));
    let rows = section.filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`').map(|(name, _)| name))
        .filter(|name| name.ends_with(".rs"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &[&str]) -> Vec<String> {
        let table = |heading: &str, rows: &[&str]| {
            let rows: String = rows
                .iter()
                .map(|row| format!("| `{row}` | does |\n"))
                .collect();
            format!("{heading}\n\n| file | does |\n|---|---|\n{rows}\n")
        };
        let text = table(WALKS[0].0, rows) + &table(WALKS[1].0, &["a.rs"]);
        let files = ["a.rs", "b.rs", "c.rs"].map(|file| Path::new("crates/core/src").join(file));
        let arrows = BTreeMap::from([(0, BTreeSet::from([1]))]);
        wrong(&text, &files, &arrows)
    }

    #[test]
    fn files_that_lead_to_each_other_are_a_walk() {
        assert!(found(&["a.rs", "b.rs"]).is_empty());
    }

    #[test]
    fn file_that_is_not_there_or_not_used_is_found() {
        assert_eq!(found(&["a.rs", "d.rs"]).len(), 1);
        assert_eq!(found(&["a.rs", "c.rs"]).len(), 1);
        assert_eq!(found(&["b.rs", "a.rs"]).len(), 1);
    }

    #[test]
    fn long_walk_and_a_missing_table_are_found() {
        assert_eq!(found(&["a.rs", "b.rs"].repeat(7)).len(), 1 + 6);
        assert_eq!(wrong("", &[], &BTreeMap::new()).len(), WALKS.len());
    }
}
