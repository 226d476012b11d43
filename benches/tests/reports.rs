//! The measuring benches as their user runs them, as quickly as can be.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use zookeeper_recipes_interop::{Program, ProgramError, can_run};

type Outcome = Result<(), Box<dyn Error>>;

/// The rows of a CSV file, each by the names of its columns.
fn rows(path: &Path) -> Result<Vec<BTreeMap<String, String>>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = text.lines().map(|line| {
        let mut is_quoted = false;
        let cells = line.split(move |character| {
            is_quoted ^= character == '"';
            character == ',' && !is_quoted
        });
        cells.map(|cell| cell.trim_matches('"').to_owned())
    });
    let heads: Vec<String> = lines.next().ok_or("no heads")?.collect();
    Ok(lines
        .map(|cells| heads.iter().cloned().zip(cells).collect())
        .collect())
}

fn figure(row: &BTreeMap<String, String>, name: &str) -> Result<f64, Box<dyn Error>> {
    let cell = row
        .get(name)
        .ok_or_else(|| format!("no {name:?} in {row:?}"))?;
    Ok(cell
        .parse()
        .map_err(|error| format!("{name}: {cell:?}: {error}"))?)
}

fn run(bench: &str, arguments: &[&str], directory: &Path) -> Outcome {
    let output = Command::new(bench)
        .args(arguments)
        .arg("--quick")
        .arg("--output")
        .arg(directory)
        .output()?;
    assert!(output.status.success(), "{output:?}");
    let written = String::from_utf8(output.stdout)?;
    for kind in [".md", ".csv", ".svg"] {
        assert!(
            written.lines().any(|path| path.ends_with(kind)),
            "{written}"
        );
    }
    for path in written.lines() {
        assert!(fs::metadata(path)?.len() > 0, "{path} is empty");
    }
    Ok(())
}

#[test]
fn peers_over_a_round_trip_wait_for_each_of_them() -> Outcome {
    if !peers_are_available("bench peers, with a round trip") {
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let rows_measured = "lock,fresh,try,contended-2";
    let arguments = [
        "--round-trip",
        "2",
        "--servers",
        "3",
        "--rows",
        rows_measured,
    ];
    run(env!("CARGO_BIN_EXE_peers"), &arguments, directory.path())?;
    let costs = rows(&directory.path().join("network-costs.csv"))?;
    let mut found = BTreeSet::new();
    for row in &costs {
        let [work, library] = ["work", "library"].map(|name| &*row[name]);
        found.insert((work, library));
        let trips = figure(row, "round trips")?;
        assert!(trips >= 1.0, "{row:?}");
        // Each round trip takes 2 ms. So few turns as a busy machine has have no median.
        if !work.contains("contend") && !row["p50 [ms]"].is_empty() && library != "Client::lock" {
            assert!(figure(row, "p50 [ms]")? >= 1.9 * trips.floor(), "{row:?}");
        }
        let expected = match work {
            "lock, uncontended" => 2.0..2.9,
            "failed try" => 1.0..1.5,
            _ => continue,
        };
        if library == "ours" {
            assert!(expected.contains(&trips), "{row:?}");
        }
    }
    assert_eq!(found.len(), 14, "{found:?}");
    Ok(())
}

#[test]
fn herd_counts_exactly_whom_each_way_wakes() -> Outcome {
    let directory = tempfile::tempdir()?;
    run(env!("CARGO_BIN_EXE_herd"), &[], directory.path())?;
    let read = |name: &str| rows(&directory.path().join(name));
    let mut ways = BTreeSet::new();
    for row in &read("herd-lock-release.csv")? {
        check_release(row)?;
        ways.insert((row["way to wait"].clone(), row["contenders"].clone()));
    }
    for contenders in ["2", "5"] {
        let of_size = ways.iter().filter(|(_, it)| it == contenders);
        assert_eq!(of_size.count(), 5, "{ways:?}");
    }

    for row in read("herd-lock-join.csv")? {
        let others = figure(&row, "contenders")? - 1.0;
        // A new contender wakes all waiters that watch the directory.
        let woken = match row["way to wait"].as_str() {
            "parent" => others - 1.0,
            _ => 0.0,
        };
        assert_eq!(figure(&row, "woken")?, woken, "{row:?}");
    }

    for row in read("herd-shared-lock-release.csv")? {
        assert_ne!(row["way to wait"], "single node", "which knows no readers");
        let others = figure(&row, "contenders")? - 1.0;
        assert!(figure(&row, "woken")? <= others, "{row:?}");
    }

    // A longer queue, whose contenders share sessions, costs the same but for the list.
    for (file, way, requests) in [
        ("herd-lock-join.csv", "predecessor (list on wake)", 4.0),
        ("herd-lock-join.csv", "predecessor (no read)", 4.0),
        ("herd-lock-release.csv", "predecessor (list on wake)", 2.0),
        ("herd-lock-release.csv", "predecessor (no read)", 1.0),
    ] {
        let mut bytes_without_lists = Vec::new();
        for row in read(file)?.iter().filter(|row| row["way to wait"] == way) {
            if row["contenders"] != "2" {
                assert_eq!(figure(row, "requests")?, requests, "{row:?}");
                bytes_without_lists.push(figure(row, "without lists")?);
            }
        }
        let [few, many] = bytes_without_lists[..] else {
            return Err(format!("not two rows for {way} in {file}").into());
        };
        // A contender that has never waited has no watch on its own znode, and gets no notification. Two
        // neighbours of one session get one of 100 bytes together. A list would be 880 bytes longer.
        assert!((few - many).abs() < 120.0, "{file}, {way}: {few}, {many}");
    }
    Ok(())
}

fn check_release(row: &BTreeMap<String, String>) -> Outcome {
    let way = row["way to wait"].as_str();
    let others = figure(row, "contenders")? - 1.0;
    let woken = figure(row, "woken")?;
    match way {
        "poll" => assert_eq!(woken, 0.0, "{row:?}"),
        "single node" | "parent" => assert_eq!(woken, others, "{row:?}"),
        // The next one may be of the same session.
        _ if others > 4.0 => assert!(woken <= 1.0, "{row:?}"),
        _ => assert_eq!(woken, 1.0, "{row:?}"),
    }
    assert!(figure(row, "notifications")? >= woken, "{row:?}");
    assert_eq!(figure(row, "timed")?, 10.0, "{row:?}");
    assert!(figure(row, "p50 [ms]")? > 0.0, "{row:?}");
    assert_eq!(row["p99 [ms]"], "", "ten handoffs have no percentile");
    // The release, and the requests of the waiters that it wakes.
    let requests = figure(row, "requests")?;
    match way {
        // With two contenders, the waiter has no other one before it, and does not list.
        "predecessor (list on wake)" if others == 1.0 => assert_eq!(requests, 1.0, "{row:?}"),
        "predecessor (list on wake)" => assert_eq!(requests, 2.0, "{row:?}"),
        "predecessor (no read)" => assert_eq!(requests, 1.0, "{row:?}"),
        // Each waiter tries to create the znode, and all but one watch it again. On a busy
        // machine one can come so late that the znode has gone again, and tries once more.
        "single node" => {
            let least = 1.0 + others + (others - 1.0);
            assert!((least..least + 1.0).contains(&requests), "{row:?}");
        }
        _ => assert!(requests >= 1.0, "{row:?}"),
    }
    assert!(figure(row, "bytes")? > 50.0 * requests, "{row:?}");
    Ok(())
}

/// Whether the libraries of other languages are installed. The test fails if one is installed and
/// does not work.
fn peers_are_available(suite: &str) -> bool {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let programs = [
        Program::curator(&target, &Program::QUICK_JAVA),
        Program::kazoo(&target),
    ];
    let missing = programs.into_iter().filter_map(|program| match program {
        Ok(_) => None,
        Err(missing @ ProgramError::Missing { .. }) => Some(missing.to_string()),
        Err(broken) => panic!("{broken}"),
    });
    let missing: Vec<String> = missing.collect();
    can_run(suite, &missing)
}

#[test]
fn sessions_come_back_after_the_death_of_a_member() -> Outcome {
    if !peers_are_available("bench sessions") {
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    run(env!("CARGO_BIN_EXE_sessions"), &[], directory.path())?;
    let read = |name: &str| rows(&directory.path().join(name));
    let handoffs = read("sessions-handoffs.csv")?;
    let libraries: Vec<&str> = handoffs.iter().map(|row| &*row["library"]).collect();
    assert_eq!(libraries, ["ours", "Curator"]);
    // Whether the other library comes through a busy machine is not for this test to say.
    assert!(
        figure(&handoffs[0], "handoffs [1/s]")? > 0.0,
        "{handoffs:?}"
    );
    for library in ["ours", "curator"] {
        let seconds = read(&format!("sessions-seconds-{library}.csv"))?;
        assert_eq!(seconds.len(), 10, "{seconds:?}");
        let counted = |name: &str| -> Result<f64, Box<dyn Error>> {
            seconds.iter().map(|row| figure(row, name)).sum()
        };
        // At least the sessions that the member served come back, and set their watches again.
        assert!(counted("connections")? >= 1.0, "{seconds:?}");
        let again = counted("requests that set watches again")?;
        assert!(again >= 1.0, "{seconds:?}");
    }
    let works = read("sessions-works.csv")?;
    for row in works.iter().filter(|row| row["library"] == "ours") {
        let [before, after] = ["locks held before", "locks held after"];
        assert_eq!(figure(row, before)?, figure(row, after)?, "{row:?}");
    }
    Ok(())
}

#[test]
fn assignment_moves_only_what_it_must() -> Outcome {
    let directory = tempfile::tempdir()?;
    run(env!("CARGO_BIN_EXE_assignment"), &[], directory.path())?;
    let read = |name: &str| rows(&directory.path().join(name));
    let phases = read("assignment-kazoo.csv")?;
    for row in &phases {
        // Of 40 partitions, each of four workers has ten.
        let expected = match (&*row["what"], &*row["library"]) {
            ("start", _) | (_, "kazoo") => 40.0,
            _ => 10.0,
        };
        assert!(figure(row, "grants")? >= expected, "{row:?}");
        assert!(figure(row, "balanced [s]")? > 0.0, "{row:?}");
        assert!(figure(row, "requests")? > expected, "{row:?}");
        assert!(figure(row, "watches")? > 0.0, "{row:?}");
    }
    let [ours, kazoo] = ["ours", "kazoo"].map(|library| {
        let of = phases.iter().filter(|row| row["library"] == library);
        of.count()
    });
    assert!(ours == 3 && (kazoo == 3 || !peers_are_available("bench assignment")));
    for row in read("assignment-transactions.csv")? {
        assert!(figure(&row, "ratio")? >= 1.0, "{row:?}");
    }
    let restarts = read("assignment-restarts.csv")?;
    let most = restarts.iter().map(|row| figure(row, "most"));
    let most: Vec<f64> = most.collect::<Result<_, _>>()?;
    // With a grace, each partition goes back to its worker.
    assert!(most[0] >= 2.0 && most[1] == 1.0, "{restarts:?}");
    Ok(())
}

#[test]
fn peers_have_a_figure_of_each_library_for_each_row_that_it_has() -> Outcome {
    if !peers_are_available("bench peers") {
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let rows_measured = ["--rows", "lock,try,contended-2,readers,memory"];
    run(
        env!("CARGO_BIN_EXE_peers"),
        &rows_measured,
        directory.path(),
    )?;
    let rounds = rows(&directory.path().join("peers-rounds.csv"))?;
    let mut found = BTreeSet::new();
    for row in &rounds {
        assert!(figure(row, "figure")? > 0.0, "{row:?}");
        found.insert(["row", "unit", "library"].map(|column| &*row[column]));
    }
    let mut expected = BTreeSet::new();
    for (row, unit, has_client) in [
        ("lock", "1/s", true),
        ("try", "1/s", false),
        ("contended-2", "1/s", true),
        ("readers", "ms", false),
        ("memory", "bytes", true),
    ] {
        let libraries = ["Client::lock", "Curator", "kazoo", "ours"].into_iter();
        expected.extend(
            libraries
                .skip(usize::from(!has_client))
                .map(|it| [row, unit, it]),
        );
    }
    assert_eq!(found, expected);

    let read = |name: &str| fs::read_to_string(directory.path().join(name));
    let text = read("peers.md")?;
    for said in [
        "Curator: Apache Curator ",
        "kazoo: kazoo ",
        "Client::lock: zookeeper-client ",
        "## Where ours loses",
        "## What is to be reached",
        "## What a turn costs",
    ] {
        assert!(text.contains(said), "{said:?}: {text}");
    }
    assert!(read("peers-ratios.svg")?.contains("failed try"));

    // A create, at first a list, and a delete; and a list.
    let costs = rows(&directory.path().join("peers-costs.csv"))?;
    for (of, expected) in [("lock, uncontended", 2.0..2.9), ("failed try", 0.9..1.5)] {
        let mut ours = costs.iter().filter(|it| it["library"] == "ours");
        let ours = ours.find(|it| it["work"] == of).ok_or(of)?;
        let requests = figure(ours, "requests")?;
        assert!(expected.contains(&requests), "{of}: {requests}");
    }
    Ok(())
}
