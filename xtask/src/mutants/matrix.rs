//! Which suites find which mistakes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::mutant::Mutant;
use super::outcome::first_failure;
use super::suites::Suite;
use super::{at_a_time, lock, with};

/// The name of the row without a mistake.
const CONTROL: &str = "(none)";

/// A suite that runs longer without a mistake has failed.
const LONGEST: Duration = Duration::from_secs(900);

/// How often a suite is run again without the tests that fail in it and pass alone.
const RETRIES: usize = 2;

const GREEN: &str = "green";

/// What begins the page of a table.
const HEAD: &str = "# Which tests find which mistakes

`cargo xtask simulate --mutants --matrix FILE` has written this page. Each row is a mistake of \
[mutants.toml](schedules/mutants.toml), each column the unit tests of all crates, the integration \
tests of one package, or the seeds that the gate runs, with the seconds that they take without a \
mistake. A suite was stopped at its first failure.

`x` has found it. `-` has not. `/` does not compile the code that the mistake changes. `?` has not \
been settled: a test failed that passes alone. An empty cell was not run.

";

/// What a suite has found, and after how long.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    seconds: u64,
    verdict: String,
}

/// The cells, by the mutant and the suite.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cells(BTreeMap<(String, String), Cell>);

/// The cells that are known, and the file that has them.
struct Log {
    cells: Cells,
    file: File,
    path: PathBuf,
}

/// Runs each suite without a mistake, and then each with each of these mutants, the quick suites
/// first. A suite stops at its first failure. A red suite without a mistake is left out.
///
/// Each result is a line of `log`, which the next run reads. So a run can be stopped and continues,
/// and a line that is deleted is run again. The table is a page beside the log.
///
/// The call fails at the end if a suite was left out, or if none has found some mutant.
pub(super) fn run(mutants: &[Mutant], suites: &[Suite], log: &Path) -> anyhow::Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(log);
    let log = Mutex::new(Log {
        cells: Cells::read(log)?,
        file: file.with_context(|| format!("cannot open {}", log.display()))?,
        path: log.with_extension("md"),
    });
    let rows: Vec<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    let errors = Mutex::new(Vec::new());
    let run_all = |cells: Vec<(Option<&Mutant>, &Suite, Duration)>| {
        at_a_time(&cells, |(mutant, suite, time)| {
            let done = judge(*mutant, suite, *time).and_then(|cell| {
                let row = mutant.map_or(CONTROL, |it| &it.name);
                lock(&log).add(row, &suite.name, cell, page(&rows, mutants, suites))
            });
            if let Err(error) = done {
                lock(&errors).push(format!("{}: {error:#}", suite.name));
            }
        });
    };
    let is_known = |row: &str, suite: &Suite| lock(&log).cells.get(row, &suite.name).is_some();
    let unknown = suites.iter().filter(|suite| !is_known(CONTROL, suite));
    run_all(unknown.map(|suite| (None, suite, LONGEST)).collect());
    let mut counted: Vec<(u64, &Suite)> = Vec::new();
    for suite in suites {
        if let Some(seconds) = lock(&log).cells.control(&suite.name) {
            counted.push((seconds, suite));
        }
    }
    counted.sort_by_key(|(seconds, _)| *seconds);
    let mut cells = Vec::new();
    for (seconds, suite) in &counted {
        let time = Duration::from_secs(3 * seconds + 60);
        for mutant in mutants {
            if suite.sees(mutant) && !is_known(&mutant.name, suite) {
                cells.push((Some(mutant), *suite, time));
            }
        }
    }
    run_all(cells);
    let errors = lock(&errors);
    ensure!(errors.is_empty(), "{}", errors.join("\n"));
    let counted: Vec<&str> = counted.iter().map(|(_, suite)| &*suite.name).collect();
    let left_out = suites.iter().map(|suite| &*suite.name);
    let left_out: Vec<&str> = left_out.filter(|suite| !counted.contains(suite)).collect();
    ensure!(
        left_out.is_empty(),
        "red without a mistake, and left out: {}",
        left_out.join(", ")
    );
    lock(&log).cells.require_findings(&rows, &counted)
}

/// Runs a suite: `green`, `red` with the first test that fails in it and alone, or `unsure` with
/// the tests that fail in it and pass alone.
fn judge(mutant: Option<&Mutant>, suite: &Suite, time: Duration) -> anyhow::Result<Cell> {
    let began = Instant::now();
    let cell = |verdict| Cell {
        seconds: began.elapsed().as_secs(),
        verdict,
    };
    let mut unsure: Vec<String> = Vec::new();
    for index in 0..suite.commands(mutant).len() {
        let command = || suite.commands(mutant).swap_remove(index);
        loop {
            let mut run = command();
            for test in &unsure {
                run.args(["--skip", test]);
            }
            let Some(failure) = first_failure(with(&mut run, mutant), time)? else {
                break;
            };
            let test = failure.strip_prefix("test ");
            let Some(test) = test.and_then(|it| it.strip_suffix(" ... FAILED")) else {
                return Ok(cell(format!("red: {failure}")));
            };
            let mut alone = command();
            if first_failure(with(alone.args(["--exact", test]), mutant), time)?.is_some() {
                return Ok(cell(format!("red: {test}")));
            }
            unsure.push(test.to_owned());
            if unsure.len() > RETRIES {
                return Ok(cell(format!("unsure: {}", unsure.join(", "))));
            }
        }
    }
    Ok(cell(GREEN.to_owned()))
}

/// The page of the cells that are known.
fn page(rows: &[&str], mutants: &[Mutant], suites: &[Suite]) -> impl Fn(&Cells) -> String {
    let mut blind = Vec::new();
    for mutant in mutants {
        for suite in suites.iter().filter(|suite| !suite.sees(mutant)) {
            blind.push((mutant.name.clone(), suite.name.clone()));
        }
    }
    let rows: Vec<String> = rows.iter().map(|it| (*it).to_owned()).collect();
    let suites: Vec<String> = suites.iter().map(|it| it.name.clone()).collect();
    move |cells| {
        let is_blind =
            |row: &str, suite: &str| blind.iter().any(|(blind, of)| blind == row && of == suite);
        format!("{HEAD}{}", cells.table(&rows, &suites, is_blind))
    }
}

impl Log {
    /// Adds a cell to the log, and writes the page anew.
    fn add(
        &mut self,
        row: &str,
        suite: &str,
        cell: Cell,
        page: impl Fn(&Cells) -> String,
    ) -> anyhow::Result<()> {
        let line = format!("{row}\t{suite}\t{} s\t{}", cell.seconds, cell.verdict);
        println!("{line}");
        writeln!(self.file, "{line}").context("cannot write the log")?;
        self.cells
            .0
            .insert((row.to_owned(), suite.to_owned()), cell);
        fs::write(&self.path, page(&self.cells)).context("cannot write the page")
    }
}

impl Cells {
    /// Reads the log of an earlier run, if there is one.
    fn read(log: &Path) -> anyhow::Result<Cells> {
        match fs::read_to_string(log) {
            Ok(text) => Cells::parse(&text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Cells::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", log.display())),
        }
    }

    fn parse(text: &str) -> anyhow::Result<Cells> {
        let mut cells = Cells::default();
        for line in text.lines() {
            let parts: Vec<&str> = line.splitn(4, '\t').collect();
            let [mutant, suite, seconds, verdict] = parts[..] else {
                bail!("not a line of a matrix: {line}");
            };
            let seconds = seconds.trim_end_matches(" s").parse();
            let cell = Cell {
                seconds: seconds.with_context(|| format!("not a line of a matrix: {line}"))?,
                verdict: verdict.to_owned(),
            };
            cells.0.insert((mutant.to_owned(), suite.to_owned()), cell);
        }
        Ok(cells)
    }

    fn get(&self, row: &str, suite: &str) -> Option<&Cell> {
        self.0.get(&(row.to_owned(), suite.to_owned()))
    }

    /// The seconds of a suite without a mistake. `None` if it is red: its failures prove nothing.
    fn control(&self, suite: &str) -> Option<u64> {
        let cell = self.get(CONTROL, suite)?;
        (cell.verdict == GREEN).then_some(cell.seconds)
    }

    /// The table in Markdown, with the seconds of each suite.
    fn table(
        &self,
        rows: &[impl AsRef<str>],
        suites: &[impl AsRef<str>],
        is_blind: impl Fn(&str, &str) -> bool,
    ) -> String {
        let suites = suites.iter().map(AsRef::as_ref);
        let mut suites: Vec<(u64, &str)> = suites
            .filter_map(|suite| Some((self.control(suite)?, suite)))
            .collect();
        suites.sort_unstable();
        let line =
            |first: &str, cells: Vec<String>| format!("| {first} | {} |\n", cells.join(" | "));
        let heads = suites
            .iter()
            .map(|(seconds, suite)| format!("{suite} {seconds} s"));
        let mut table = line("mistake", heads.collect());
        table += &format!("|---|{}\n", "---|".repeat(suites.len()));
        for row in rows.iter().map(AsRef::as_ref) {
            let mark = |(_, suite): &(u64, &str)| match self.get(row, suite) {
                Some(cell) if cell.verdict == GREEN => "-",
                Some(cell) if cell.verdict.starts_with("red") => "x",
                Some(_) => "?",
                None if is_blind(row, suite) => "/",
                None => "",
            };
            let marks = suites.iter().map(|suite| mark(suite).to_owned());
            table += &line(row, marks.collect());
        }
        table
    }

    /// Fails if none of these suites has found some mutant.
    fn require_findings(&self, mutants: &[&str], suites: &[&str]) -> anyhow::Result<()> {
        let is_red = |cell: &Cell| cell.verdict.starts_with("red");
        let is_found = |mutant: &str| {
            let mut cells = suites.iter().filter_map(|suite| self.get(mutant, suite));
            cells.any(is_red)
        };
        let missed = mutants.iter().filter(|mutant| !is_found(mutant));
        let missed: Vec<&str> = missed.copied().collect();
        ensure!(
            missed.is_empty(),
            "found by no suite: {}",
            missed.join(", ")
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "(none)\tunit\t1 s\tgreen\n\
                       (none)\tcore\t9 s\tgreen\n\
                       (none)\tsoak\t1 s\tred: a\n\
                       late\tunit\t2 s\tred: b\n\
                       late\tcore\t2 s\tgreen\n\
                       early\tunit\t2 s\tunsure: c\n";

    #[test]
    fn table_has_a_mark_for_each_suite_and_names_what_none_finds() {
        let cells = Cells::parse(LOG).expect("a log");
        let table = cells.table(
            &["early", "late", "never"],
            &["core", "soak", "unit"],
            |row, _| row == "never",
        );
        assert_eq!(
            table,
            "| mistake | unit 1 s | core 9 s |\n|---|---|---|\n\
             | early | ? |  |\n| late | x | - |\n| never | / | / |\n"
        );
        let suites = ["unit", "core"];
        assert!(cells.require_findings(&["late"], &suites).is_ok());
        let error = cells.require_findings(&["early", "late"], &suites);
        let text = error.expect_err("one is missed").to_string();
        assert_eq!(text, "found by no suite: early");
    }

    #[test]
    fn run_continues_after_the_lines_of_its_log() {
        let directory = std::env::temp_dir().join(format!("matrix-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("it is created");
        let path = directory.join("log");
        let cells = Cells::read(&path).expect("there is none");
        let file = File::create(&path).expect("it is created");
        let page = directory.join("page");
        let mut log = Log {
            cells,
            file,
            path: page.clone(),
        };
        let cell = Cell {
            seconds: 3,
            verdict: GREEN.to_owned(),
        };
        let added = log.add("late", "core", cell, |cells| {
            format!("{} cell", cells.0.len())
        });
        added.expect("it is written");
        assert_eq!(Cells::read(&path).expect("a log"), log.cells);
        assert_eq!(fs::read_to_string(page).expect("a page"), "1 cell");
        assert!(Cells::parse("late\tcore").is_err());
        fs::remove_dir_all(directory).expect("it is removed");
    }
}
