//! The tables of `ARCHITECTURE.md`: the files that one acquisition and one release run through.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(super) const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// The root file of the crate that the tables are about.
pub(super) const CORE: &str = "crates/core/src/lib.rs";

/// The tables of one act, by their headings.
struct Walk {
    files: &'static str,
    /// The most files that the table may list.
    most: usize,
    /// The files that the walk uses, and that its reader need not open.
    beside: &'static str,
}

const WALKS: [Walk; 2] = [
    Walk {
        files: "## One acquisition",
        most: 12,
        beside: "### Beside the acquisition",
    },
    Walk {
        files: "## One release",
        most: 5,
        beside: "### Beside the release",
    },
];

/// The files that are beside both.
const VOCABULARY: &str = "### The vocabulary of both";

/// What is wrong with the tables.
///
/// Each file exists. An earlier file of the table takes something from each file but the first. A
/// table lists each file that its files take something from, except those beside it.
pub(super) fn wrong(
    architecture: &str,
    files: &[PathBuf],
    arrows: &BTreeMap<usize, BTreeSet<usize>>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let path = |name: &str| Path::new("crates/core/src").join(name);
    for Walk {
        files: heading,
        most,
        beside,
    } in WALKS
    {
        let listed = listed(architecture, heading);
        if listed.is_empty() || listed.len() > most {
            let number = listed.len();
            wrong.push(format!(
                "{heading}: {number} files, at least 1 and at most {most}"
            ));
        }
        let mut walked: Vec<usize> = Vec::new();
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        for name in listed {
            let Some(place) = files.iter().position(|file| *file == path(name)) else {
                wrong.push(format!("{heading}: there is no file {name}"));
                continue;
            };
            if !walked.is_empty() && !taken.contains(&place) {
                wrong.push(format!("{heading}: no file before {name} uses it"));
            }
            walked.push(place);
            taken.extend(arrows.get(&place).into_iter().flatten());
        }
        taken.retain(|place| !walked.contains(place));
        let own = self::listed(architecture, beside);
        for name in &own {
            if !taken
                .iter()
                .any(|place| files[*place].starts_with(path(name)))
            {
                wrong.push(format!("{beside}: no file of the walk uses {name}"));
            }
        }
        let vocabulary = self::listed(architecture, VOCABULARY);
        let beside: Vec<PathBuf> = own
            .iter()
            .chain(&vocabulary)
            .map(|name| path(name))
            .collect();
        for place in taken {
            let file = &files[place];
            if !beside.iter().any(|beside| file.starts_with(beside)) {
                let file = file.display();
                wrong.push(format!(
                    "{heading}: {file} is used, and is not in the table"
                ));
            }
        }
    }
    wrong
}

/// The files and directories in the first column of the table below a heading.
fn listed<'a>(architecture: &'a str, heading: &str) -> Vec<&'a str> {
    let Some((_, below)) = architecture.split_once(heading) else {
        return Vec::new();
    };
    let section = below.lines().take_while(|line| !line.starts_with('#'));
    let cells = section.filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').step_by(2));
    names
        .filter(|name| name.ends_with(".rs") || name.ends_with('/'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &[&str], beside: &[&str]) -> Vec<String> {
        let table = |heading: &str, rows: &[&str]| {
            let rows: String = rows
                .iter()
                .map(|row| format!("| `{row}` | does |\n"))
                .collect();
            format!("{heading}\n\n| file | does |\n|---|---|\n{rows}\n")
        };
        let text = table(WALKS[0].files, rows)
            + &table(WALKS[0].beside, beside)
            + &table(WALKS[1].files, &["c.rs"])
            + &table(VOCABULARY, &["words/"]);
        let files = ["a.rs", "b.rs", "c.rs", "words/d.rs"];
        let files = files.map(|file| Path::new("crates/core/src").join(file));
        let arrows = BTreeMap::from([(0, BTreeSet::from([1])), (1, BTreeSet::from([3]))]);
        wrong(&text, &files, &arrows)
    }

    #[test]
    fn files_that_lead_to_each_other_are_a_walk() {
        assert!(found(&["a.rs", "b.rs"], &[]).is_empty());
    }

    #[test]
    fn file_that_is_not_there_or_not_used_is_found() {
        assert_eq!(found(&["a.rs", "b.rs", "d.rs"], &[]).len(), 1);
        assert_eq!(found(&["a.rs", "b.rs", "c.rs"], &[]).len(), 1);
        assert_eq!(found(&["b.rs", "a.rs"], &[]).len(), 1);
    }

    #[test]
    fn file_that_is_used_is_in_the_table_or_beside_it() {
        assert_eq!(found(&["a.rs"], &[]).len(), 1);
        assert!(found(&["a.rs"], &["b.rs"]).is_empty());
        assert_eq!(found(&["a.rs", "b.rs"], &["c.rs"]).len(), 1);
    }

    #[test]
    fn long_walk_and_a_missing_table_are_found() {
        assert_eq!(found(&["a.rs", "b.rs"].repeat(7), &[]).len(), 1 + 6);
        assert_eq!(wrong("", &[], &BTreeMap::new()).len(), WALKS.len());
    }
}
