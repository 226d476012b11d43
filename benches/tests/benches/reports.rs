//! The measuring benches as their user runs them, as quickly as can be.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use zookeeper_recipes_benches::report::{Table, shown};
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
        let is_written = written.lines().any(|path| path.ends_with(kind));
        let has_no_picture = bench.ends_with("peers") || bench.ends_with("assignment");
        assert!(
            is_written || (kind == ".svg" && has_no_picture),
            "{written}"
        );
    }
    for path in written.lines() {
        assert!(fs::metadata(path)?.len() > 0, "{path} is empty");
    }
    Ok(())
}

#[test]
fn herd_counts_exactly_whom_each_way_wakes() -> Outcome {
    let directory = tempfile::tempdir()?;
    run(env!("CARGO_BIN_EXE_herd"), &[], directory.path())?;
    let read = |name: &str| rows(&directory.path().join(name));
    let releases = read("herd-lock-release.csv")?;
    for row in &releases {
        let others = figure(row, "contenders")? - 1.0;
        let [woken, requests] = [figure(row, "woken")?, figure(row, "requests")?];
        match row["way to wait"].as_str() {
            "poll" => assert_eq!(woken, 0.0, "{row:?}"),
            "parent" => assert_eq!(woken, others, "{row:?}"),
            // Each waiter tries to create the znode, and all but one watch it again. On a busy
            // machine one can come so late that the znode has gone again, and tries once more.
            "single node" => {
                assert_eq!(woken, others, "{row:?}");
                assert!(
                    (2.0 * others..2.0 * others + 1.0).contains(&requests),
                    "{row:?}"
                );
            }
            // The next one may be of the same session.
            _ => assert!(woken <= 1.0 && (woken == 1.0 || others > 4.0), "{row:?}"),
        }
        assert!(figure(row, "p50 [ms]")? > 0.0, "{row:?}");
        assert_eq!(row["p99 [ms]"], "", "ten handoffs have no percentile");
    }
    let of_two = releases.iter().filter(|row| row["contenders"] == "2");
    assert_eq!(of_two.count(), 5, "{releases:?}");
    // A longer queue, whose contenders share sessions, costs the same requests.
    for (file, way, requests) in [
        ("herd-lock-join.csv", "predecessor (list on wake)", 4.0),
        ("herd-lock-join.csv", "predecessor (no read)", 4.0),
        ("herd-lock-release.csv", "predecessor (list on wake)", 2.0),
        ("herd-lock-release.csv", "predecessor (no read)", 1.0),
    ] {
        for row in read(file)?.iter().filter(|row| row["way to wait"] == way) {
            let is_alone = row["contenders"] == "2";
            assert!(is_alone || figure(row, "requests")? == requests, "{row:?}");
        }
    }
    Ok(())
}

#[test]
fn figures_have_three_digits_that_mean_something_in_columns() {
    let rows = [("poll, |often|", Some(1234.567)), ("parent", None)];
    let table = Table::of(
        rows,
        &[
            ("way", &|(way, _)| (*way).into()),
            ("time [ms]", &|(_, time)| (*time).into()),
        ],
    );
    assert_eq!(
        table.to_markdown(),
        "| way             | time [ms] |\n\
         | --------------- | --------: |\n\
         | poll, \\|often\\| |     1,235 |\n\
         | parent          |         – |\n"
    );
    for (figure, text) in [
        (0.0, "0"),
        (0.012_345, "0.0123"),
        (9.996, "10"),
        (12.34, "12.3"),
    ] {
        assert_eq!(shown(figure), text);
    }
}

/// Whether a library of another language is installed. The test fails if it is installed and does
/// not work.
fn is_available(suite: &str, library: &str) -> bool {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let program = match library {
        "curator" => Program::curator(&target, &Program::QUICK_JAVA),
        _ => Program::kazoo(&target),
    };
    let missing = match program {
        Ok(_) => None,
        Err(missing @ ProgramError::Missing { .. }) => Some(missing.to_string()),
        Err(broken) => panic!("{broken}"),
    };
    can_run(suite, missing.as_slice())
}

#[test]
fn overview_that_is_kept_up_to_date_lists_nothing_again() -> Outcome {
    let directory = tempfile::tempdir()?;
    run(env!("CARGO_BIN_EXE_overview"), &[], directory.path())?;
    let read = |name: &str| rows(&directory.path().join(name));
    let looks = read("overview-looks.csv")?;
    let look = looks.first().ok_or("no look")?;
    assert!(
        figure(look, "requests")? >= figure(look, "queues")?,
        "{look:?}"
    );
    let follows = read("overview-follows.csv")?;
    let follow = follows.first().ok_or("nothing is kept up to date")?;
    assert_eq!(figure(follow, "at rest: requests/s")?, 0.0, "{follow:?}");
    let [handoffs, requests, events] =
        ["handoffs/s", "under load: requests/s", "notifications/s"].map(|it| figure(follow, it));
    let (handoffs, requests, events) = (handoffs?, requests?, events?);
    assert!(handoffs > 10.0 && events > handoffs, "{follow:?}");
    assert!(requests < handoffs / 5.0, "{follow:?}");
    assert_eq!(read("overview-effect.csv")?.len(), 3);
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
    assert!(ours == 3 && (kazoo == 3 || !is_available("bench assignment", "kazoo")));
    let restarts = read("assignment-restarts.csv")?;
    let most = restarts.iter().map(|row| figure(row, "most"));
    let most: Vec<f64> = most.collect::<Result<_, _>>()?;
    // With a grace, each partition goes back to its worker.
    assert!(most[0] >= 2.0 && most[1] == 1.0, "{restarts:?}");
    Ok(())
}

#[test]
fn peers_have_a_figure_of_each_library_for_each_row_that_it_has() -> Outcome {
    let there = ["curator", "kazoo"].map(|library| is_available("bench peers", library));
    let directory = tempfile::tempdir()?;
    let rows_measured = ["--rows", "lock,try,readers,memory"];
    run(
        env!("CARGO_BIN_EXE_peers"),
        &rows_measured,
        directory.path(),
    )?;
    let mut found = BTreeSet::new();
    for row in &rows(&directory.path().join("peers-rounds.csv"))? {
        assert!(figure(row, "figure")? > 0.0, "{row:?}");
        found.insert(["row", "library"].map(|column| row[column].clone()));
    }
    // Client::lock has no try and no readers.
    let others = there.into_iter().filter(|it| *it).count();
    assert_eq!(found.len(), 6 + 4 * others, "{found:?}");
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

/// These take half a minute each, and start ensembles.
mod at_night {
    use super::*;

    #[test]
    fn peers_over_a_round_trip_wait_for_each_of_them() -> Outcome {
        let directory = tempfile::tempdir()?;
        let arguments = "--round-trip 2 --servers 3 --rows lock,try";
        let arguments: Vec<&str> = arguments.split(' ').collect();
        run(env!("CARGO_BIN_EXE_peers"), &arguments, directory.path())?;
        let costs = rows(&directory.path().join("network-costs.csv"))?;
        for row in costs.iter().filter(|row| row["library"] == "ours") {
            let trips = figure(row, "round trips")?;
            let expected = if row["work"] == "failed try" {
                1.0..1.5
            } else {
                2.0..2.9
            };
            assert!(expected.contains(&trips), "{row:?}");
            // Each round trip takes 2 ms. So few turns as a busy machine has have no median.
            let median = figure(row, "p50 [ms]").unwrap_or(f64::INFINITY);
            assert!(median >= 1.9 * trips.floor(), "{row:?}");
        }
        Ok(())
    }

    #[test]
    fn sessions_come_back_after_the_death_of_a_member() -> Outcome {
        let has_curator = is_available("bench sessions", "curator");
        let directory = tempfile::tempdir()?;
        run(env!("CARGO_BIN_EXE_sessions"), &[], directory.path())?;
        let read = |name: &str| rows(&directory.path().join(name));
        for library in [Some("ours"), has_curator.then_some("curator")]
            .into_iter()
            .flatten()
        {
            let seconds = read(&format!("sessions-seconds-{library}.csv"))?;
            let counted = |name: &str| -> Result<f64, Box<dyn Error>> {
                seconds.iter().map(|row| figure(row, name)).sum()
            };
            // At least the sessions that the member served come back, and set their watches again.
            assert!(counted("connections")? >= 1.0, "{seconds:?}");
            assert!(
                counted("requests that set watches again")? >= 1.0,
                "{seconds:?}"
            );
        }
        let works = read("sessions-works.csv")?;
        for row in works.iter().filter(|row| row["library"] == "ours") {
            let [before, after] = ["locks held before", "locks held after"];
            assert_eq!(figure(row, before)?, figure(row, after)?, "{row:?}");
        }
        Ok(())
    }
}
