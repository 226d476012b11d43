//! Which suites find which mistakes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::copy::Copy;
use super::mutant::Mutant;
use super::outcome::{AT_A_TIME, SCHEDULES, first_failure, with};
use crate::cargo::{Package, lowered, packages, root};
use crate::processes::{complaints, lock};
use crate::test::Artifact;

/// The name of the row without a mistake.
const CONTROL: &str = "(none)";

/// A suite that runs longer has failed.
const LONGEST: Duration = Duration::from_secs(900);

/// What begins the page of a table.
const HEAD: &str = "# Which tests find which mistakes

`cargo xtask simulate --mutants --matrix FILE` wrote this page. Each row is a mistake of \
[mutants.toml](schedules/mutants.toml). Each column is the unit tests of all crates, the integration \
tests of one package, or the seeds of CI, with the seconds that they take without a mistake. A suite \
stops at its first failure.

`x`: found. `-`: not found. `/`: the suite does not compile the changed code. `?`: undecided, because \
a test failed that passes alone, or that also fails without the mistake. An empty cell was not run.

";

/// Programs that are run one after the other, each with the directories of the crates that it is
/// compiled of.
type Suite = Vec<(Run, BTreeSet<PathBuf>)>;

enum Run {
    Tests(Artifact),
    Seeds(PathBuf),
}

/// The seconds and the verdict of each row and suite.
type Cells = BTreeMap<(String, String), (u64, String)>;

/// Runs each suite without a mistake, and then with each of these mutants. A suite that is red
/// without a mistake proves nothing, and has no column.
///
/// Each result is a line of `log`, which the next run reads. So a run can be stopped and continues,
/// and a line that is deleted is run again. The table is a page beside the log.
pub(super) fn run(
    copy: Copy,
    mutants: &[Mutant],
    names: &[String],
    log: &Path,
) -> anyhow::Result<()> {
    let mut suites = suites(copy)?;
    let known = suites.keys().cloned().collect::<Vec<_>>();
    let unknown = names.iter().find(|name| !suites.contains_key(*name));
    ensure!(
        unknown.is_none(),
        "no suite is named {unknown:?}; there are {known:?}"
    );
    suites.retain(|name, _| names.is_empty() || names.contains(name));
    let file = OpenOptions::new().create(true).append(true).open(log);
    let file = Mutex::new(file.with_context(|| format!("cannot open {}", log.display()))?);
    let mut done = read(&fs::read_to_string(log)?);
    let controls = vec![None];
    let mistakes = mutants.iter().map(Some).collect();
    // The rows of the mistakes come after the controls, which say what is proved.
    for rows in [controls, mistakes] {
        let pairs = rows
            .iter()
            .flat_map(|row| suites.iter().map(move |suite| (*row, suite)));
        let open = pairs.filter(|(row, (name, suite))| {
            let key = (name_of(*row), (*name).clone());
            let is_red = |it: &(u64, String)| it.1.starts_with("red");
            !done.contains_key(&key)
                && row.is_none_or(|it| sees(suite, it))
                && !done.get(&(CONTROL.to_owned(), key.1)).is_some_and(is_red)
        });
        let errors = complaints(
            AT_A_TIME,
            open.collect::<Vec<_>>(),
            |(row, (name, suite))| {
                let began = Instant::now();
                let added = judge(row, suite).and_then(|verdict| {
                    let seconds = began.elapsed().as_secs();
                    let line = format!("{}\t{name}\t{seconds} s\t{verdict}", name_of(row));
                    println!("{line}");
                    writeln!(lock(&file), "{line}").context("cannot write the log")
                });
                added
                    .err()
                    .map(|error| format!("{}, {name}: {error:#}", name_of(row)))
            },
        );
        ensure!(errors.is_empty(), "{}", errors.join("\n"));
        done = read(&fs::read_to_string(log)?);
    }
    let page = format!("{HEAD}{}", table(&done, mutants, &suites));
    fs::write(log.with_extension("md"), page).context("cannot write the page")
}

fn name_of(row: Option<&Mutant>) -> String {
    row.map_or_else(|| CONTROL.to_owned(), |mutant| mutant.name.clone())
}

/// The suites: the unit tests of all crates, the integration tests of each package, and the seeds.
fn suites(copy: Copy) -> anyhow::Result<BTreeMap<String, Suite>> {
    let packages = packages()?;
    let mut suites: BTreeMap<String, Suite> = BTreeMap::new();
    for artifact in copy.programs {
        let package = artifact.package();
        let name = match artifact.integration_test() {
            None if artifact.is_library() => "unit",
            None => continue,
            Some(_) => package
                .strip_prefix("zookeeper-recipes-")
                .unwrap_or("recipes"),
        };
        let (name, crates) = (name.to_owned(), compiled_of(package, &packages));
        suites
            .entry(name)
            .or_default()
            .push((Run::Tests(artifact), crates));
    }
    let seeds = (
        Run::Seeds(copy.simulation),
        compiled_of(SCHEDULES, &packages),
    );
    suites.insert("seeds".to_owned(), vec![seeds]);
    Ok(suites)
}

/// The directories of the crates that the tests of a package are compiled of.
fn compiled_of(package: &str, packages: &[Package]) -> BTreeSet<PathBuf> {
    let package = match package {
        // A workspace of its own.
        "zookeeper-recipes-shuttle" => "zookeeper-recipes-core",
        package => package,
    };
    let (mut waiting, mut found) = (vec![package], BTreeSet::new());
    while let Some(name) = waiting.pop() {
        let of_workspace = packages.iter().filter(|it| it.is_of_workspace());
        for package_of_name in of_workspace.filter(|it| it.name == name) {
            let directory = package_of_name
                .manifest_path
                .parent()
                .unwrap_or(Path::new(""));
            let directory = directory.strip_prefix(root()).unwrap_or(directory);
            if found.insert(directory.to_owned()) {
                let needed = package_of_name.dependencies.iter();
                let needed = needed.filter(|it| name == package || !it.is_for_tests());
                waiting.extend(needed.map(|it| it.name.as_str()));
            }
        }
    }
    found
}

/// True if a mutant can change what a suite finds.
fn sees(suite: &Suite, mutant: &Mutant) -> bool {
    let is_of = |file: &&str, crates: &BTreeSet<PathBuf>| {
        crates.iter().any(|it| Path::new(file).starts_with(it))
    };
    let files = mutant.files();
    suite
        .iter()
        .any(|(_, crates)| files.iter().any(|file| is_of(file, crates)))
}

fn command(run: &Run) -> Command {
    match run {
        Run::Tests(artifact) => lowered(&artifact.command()),
        Run::Seeds(simulation) => lowered(Command::new(simulation).args(["--seeds", "250"])),
    }
}

/// Runs a suite: `green`, or `red` with the first test that fails. It is `unsure` if that test passes
/// alone, or fails alone without the mutant.
fn judge(mutant: Option<&Mutant>, suite: &Suite) -> anyhow::Result<String> {
    for (run, _) in suite {
        let Some(failure) = first_failure(with(&mut command(run), mutant), LONGEST)? else {
            continue;
        };
        let test = failure.strip_prefix("test ");
        let Some(test) = test.and_then(|it| it.strip_suffix(" ... FAILED")) else {
            return Ok(format!("red: {failure}"));
        };
        let is_red = |mutant| {
            let mut alone = command(run);
            let failure = first_failure(with(alone.args(["--exact", test]), mutant), LONGEST)?;
            anyhow::Ok(failure.is_some())
        };
        let is_sure = is_red(mutant)? && (mutant.is_none() || !is_red(None)?);
        return Ok(format!(
            "{}: {test}",
            if is_sure { "red" } else { "unsure" }
        ));
    }
    Ok("green".to_owned())
}

fn read(log: &str) -> Cells {
    let cells = log.lines().filter_map(|line| {
        let [row, suite, seconds, verdict] = line.splitn(4, '\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        let seconds = seconds.trim_end_matches(" s").parse().ok()?;
        Some((
            (row.to_owned(), suite.to_owned()),
            (seconds, verdict.to_owned()),
        ))
    });
    cells.collect()
}

/// The table in Markdown of the suites that are green without a mistake, the quick ones first.
fn table(cells: &Cells, mutants: &[Mutant], suites: &BTreeMap<String, Suite>) -> String {
    let controls = cells.iter().filter(|((row, _), (_, verdict))| {
        let is_green = verdict == "green";
        row == CONTROL && is_green
    });
    let mut columns: Vec<_> = controls
        .map(|((_, suite), (seconds, _))| (*seconds, suite))
        .collect();
    columns.sort_unstable();
    let line = |first: &str, cells: Vec<String>| format!("| {first} | {} |\n", cells.join(" | "));
    let heads = columns
        .iter()
        .map(|(seconds, suite)| format!("{suite} {seconds} s"));
    let mut table = line("mistake", heads.collect());
    table += &format!("|---|{}\n", "---|".repeat(columns.len()));
    for mutant in mutants {
        let marks = columns.iter().map(|(_, suite)| {
            let verdict = cells.get(&(mutant.name.clone(), (*suite).clone()));
            let is_blind = suites.get(*suite).is_some_and(|it| !sees(it, mutant));
            let mark = match verdict.and_then(|(_, verdict)| verdict.split(':').next()) {
                None if is_blind => "/",
                None => "",
                Some("green") => "-",
                Some("red") => "x",
                Some(_) => "?",
            };
            mark.to_owned()
        });
        table += &line(&mutant.name, marks.collect());
    }
    table
}
