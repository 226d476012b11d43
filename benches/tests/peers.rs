//! The bench of the peers has a figure of each library.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use zookeeper_recipes_interop::{Program, ProgramError, can_run};

/// Whether the libraries of other languages are installed. Fails if one is, and does not work.
fn available() -> bool {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let programs = [
        Program::with_curator(&package.join("java/CuratorPeer.java"), &target, &[]),
        Program::with_kazoo(&package.join("python/kazoo_peer.py"), &target),
    ];
    let missing = programs.into_iter().filter_map(|program| match program {
        Ok(_) => None,
        Err(missing @ ProgramError::Missing { .. }) => Some(missing.to_string()),
        Err(broken) => panic!("{broken}"),
    });
    let missing: Vec<String> = missing.collect();
    can_run("bench peers", &missing)
}

/// The figures of a CSV without quotes, by the words of their row and the name of their column.
fn figures(csv: &str, words: usize) -> BTreeMap<(String, String), f64> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().expect("a line of heads");
    let mut figures = BTreeMap::new();
    for cells in lines {
        let row = cells[..words].join(" ");
        for (head, cell) in heads.iter().zip(&cells).skip(words) {
            if let Ok(figure) = cell.parse() {
                figures.insert((row.clone(), (*head).to_owned()), figure);
            }
        }
    }
    figures
}

#[test]
fn quick_run_has_a_figure_of_each_library_for_each_row_that_it_has() {
    if !available() {
        return;
    }
    let output = tempfile::tempdir().expect("a directory");
    let status = Command::new(env!("CARGO_BIN_EXE_peers"))
        .args(["--quick", "--rows", "lock,try,contended-2,readers,memory"])
        .arg("--output")
        .arg(output.path())
        .status();
    assert!(status.expect("it starts").success());

    let read = |name: &str| std::fs::read_to_string(output.path().join(name)).expect("written");
    let rounds = read("peers-rounds.csv");
    let found = figures(&rounds, 3);
    let both = |row: &str, unit: &str, libraries: &[&str]| -> Vec<(String, String)> {
        let row = |library: &&str| (format!("{row} {unit} {library}"), "figure".to_owned());
        libraries.iter().map(row).collect()
    };
    let all = ["Client::lock", "Curator", "kazoo", "ours"];
    let without_client = &all[1..];
    let mut expected = both("lock", "1/s", &all);
    expected.extend(both("try", "1/s", without_client));
    expected.extend(both("contended-2", "1/s", &all));
    expected.extend(both("readers", "ms", without_client));
    expected.extend(both("memory", "bytes", &all));
    for key in &expected {
        let figure = found.get(key);
        assert!(
            figure.is_some_and(|figure| *figure > 0.0),
            "{key:?}: {rounds}"
        );
    }
    let of_figures = found.keys().filter(|(_, column)| column == "figure");
    assert_eq!(of_figures.count(), expected.len(), "{rounds}");

    let text = read("peers.md");
    for said in [
        "Curator: Apache Curator ",
        "kazoo: kazoo ",
        "Client::lock: zookeeper-client ",
        "## Where ours loses",
        "## What is to be reached",
        "## What passes on the wire",
    ] {
        assert!(text.contains(said), "{said:?}: {text}");
    }
    assert!(read("peers-ratios.svg").contains("failed try"));

    let wire = figures(&read("peers-wire-each.csv"), 2);
    let requests = |of: &str| wire[&(of.to_owned(), "requests".to_owned())];
    // A create, at first a list, and a delete; and a list.
    assert!((2.0..2.9).contains(&requests("lock ours")), "{wire:?}");
    assert!((0.9..1.5).contains(&requests("try ours")), "{wire:?}");
}
