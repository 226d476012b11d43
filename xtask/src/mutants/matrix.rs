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
use super::processes::{at_a_time, lock, with};
use super::suites::Suite;

/// The name of the row without a mistake.
const CONTROL: &str = "(none)";

/// A suite that runs longer without a mistake has failed.
const LONGEST: Duration = Duration::from_secs(900);

/// How often a suite is run again without the tests whose failures prove nothing.
const RETRIES: usize = 2;

const GREEN: &str = "green";

/// The verdict of a suite that cannot see the mistake. It is not logged.
const BLIND: &str = "blind";

/// What begins the page of a table.
const HEAD: &str = "# Which tests find which mistakes

`cargo xtask simulate --mutants --matrix FILE` has written this page. Each row is a mistake of \
[mutants.toml](schedules/mutants.toml), each column the unit tests of all crates, the integration \
tests of one package, or the seeds that the gate runs, with the seconds that they take without a \
mistake. A suite was stopped at its first failure.

`x` has found it. `-` has not. `/` does not compile the code that the mistake changes. `?` is open: \
a test failed that passes alone, or that fails without the mistake, too. An empty cell was not run.

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

/// The cells that are known, the file that has them, and the page of their table.
struct Log {
    cells: Cells,
    file: File,
    page: PathBuf,
    rows: Vec<String>,
}

/// Runs each suite without a mistake, and then each with each of these mutants, the quick suites
/// first. A suite stops at its first failure. A suite that is red without a mistake is left out.
///
/// Each result is a line of `log`, which the next run reads. So a run can be stopped and continues,
/// and a line that is deleted is run again. The table is a page beside the log.
///
/// The call fails at the end if a suite was left out.
pub(super) fn run(mutants: &[Mutant], suites: &[Suite], log: &Path) -> anyhow::Result<()> {
    let mut cells = Cells::read(log)?;
    for (mutant, suite) in pairs(mutants, suites).filter(|(mutant, suite)| !suite.sees(mutant)) {
        cells.set(&mutant.name, &suite.name, 0, BLIND);
    }
    let file = OpenOptions::new().create(true).append(true).open(log);
    let log = Mutex::new(Log {
        cells,
        file: file.with_context(|| format!("cannot open {}", log.display()))?,
        page: log.with_extension("md"),
        rows: mutants.iter().map(|it| it.name.clone()).collect(),
    });
    let is_open = |row: &str, suite: &Suite| lock(&log).cells.get(row, &suite.name).is_none();
    let controls = suites.iter().filter(|suite| is_open(CONTROL, suite));
    run_all(controls.map(|suite| (None, suite, LONGEST)).collect(), &log)?;
    let control = |suite: &&Suite| lock(&log).cells.control(&suite.name);
    let (mut counted, left_out): (Vec<_>, Vec<_>) =
        suites.iter().partition(|suite| control(suite).is_some());
    counted.sort_by_key(control);
    let mut cells = Vec::new();
    for suite in counted {
        let time = Duration::from_secs(60 + 3 * control(&suite).unwrap_or_default());
        let mutants = mutants.iter().filter(|it| is_open(&it.name, suite));
        cells.extend(mutants.map(|mutant| (Some(mutant), suite, time)));
    }
    run_all(cells, &log)?;
    let left_out: Vec<&str> = left_out.iter().map(|it| it.name.as_str()).collect();
    ensure!(
        left_out.is_empty(),
        "red without a mistake, and left out: {}",
        left_out.join(", ")
    );
    Ok(())
}

fn pairs<'m>(
    mutants: &'m [Mutant],
    suites: &'m [Suite],
) -> impl Iterator<Item = (&'m Mutant, &'m Suite)> {
    let suites = move |mutant| suites.iter().map(move |suite| (mutant, suite));
    mutants.iter().flat_map(suites)
}

/// Runs these suites, each with its mutant and for its time, and adds what they have found.
fn run_all(
    cells: Vec<(Option<&Mutant>, &Suite, Duration)>,
    log: &Mutex<Log>,
) -> anyhow::Result<()> {
    let errors = Mutex::new(Vec::new());
    at_a_time(&cells, |(mutant, suite, time)| {
        let began = Instant::now();
        let row = mutant.map_or(CONTROL, |it| &it.name);
        let done = judge(*mutant, suite, *time).and_then(|verdict| {
            lock(log).add(row, &suite.name, began.elapsed().as_secs(), &verdict)
        });
        if let Err(error) = done {
            lock(&errors).push(format!("{row}, {}: {error:#}", suite.name));
        }
    });
    let errors = lock(&errors);
    ensure!(errors.is_empty(), "{}", errors.join("\n"));
    Ok(())
}

/// Runs a suite: `green`, `red` with the first test that fails in it, fails alone, and passes without
/// the mutant, or `unsure` with the other tests that fail in it.
fn judge(mutant: Option<&Mutant>, suite: &Suite, time: Duration) -> anyhow::Result<String> {
    let mut unsure: Vec<String> = Vec::new();
    for program in suite.programs(mutant) {
        loop {
            let mut run = program.command();
            for test in &unsure {
                run.args(["--skip", test]);
            }
            let Some(failure) = first_failure(with(&mut run, mutant), time)? else {
                break;
            };
            let test = failure.strip_prefix("test ");
            let Some(test) = test.and_then(|it| it.strip_suffix(" ... FAILED")) else {
                return Ok(format!("red: {failure}"));
            };
            let is_red = |mutant| {
                let mut alone = program.command();
                let failure = first_failure(with(alone.args(["--exact", test]), mutant), time)?;
                anyhow::Ok(failure.is_some())
            };
            if is_red(mutant)? && (mutant.is_none() || !is_red(None)?) {
                return Ok(format!("red: {test}"));
            }
            unsure.push(test.to_owned());
            if unsure.len() > RETRIES {
                return Ok(format!("unsure: {}", unsure.join(", ")));
            }
        }
    }
    Ok(GREEN.to_owned())
}

impl Log {
    /// Adds a cell to the log, and writes the page anew.
    fn add(&mut self, row: &str, suite: &str, seconds: u64, verdict: &str) -> anyhow::Result<()> {
        let line = format!("{row}\t{suite}\t{seconds} s\t{verdict}");
        println!("{line}");
        writeln!(self.file, "{line}").context("cannot write the log")?;
        self.cells.set(row, suite, seconds, verdict);
        let page = format!("{HEAD}{}", self.cells.table(&self.rows));
        fs::write(&self.page, page).context("cannot write the page")
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
            let seconds = seconds.with_context(|| format!("not a line of a matrix: {line}"))?;
            cells.set(mutant, suite, seconds, verdict);
        }
        Ok(cells)
    }

    fn set(&mut self, row: &str, suite: &str, seconds: u64, verdict: &str) {
        let verdict = verdict.to_owned();
        let cell = Cell { seconds, verdict };
        self.0.insert((row.to_owned(), suite.to_owned()), cell);
    }

    fn get(&self, row: &str, suite: &str) -> Option<&Cell> {
        self.0.get(&(row.to_owned(), suite.to_owned()))
    }

    /// The seconds of a suite without a mistake. `None` if it is red: its failures prove nothing.
    fn control(&self, suite: &str) -> Option<u64> {
        let cell = self.get(CONTROL, suite)?;
        (cell.verdict == GREEN).then_some(cell.seconds)
    }

    /// The table in Markdown of the suites that are green without a mistake, with their seconds.
    fn table(&self, rows: &[String]) -> String {
        let controls = self.0.keys().filter(|(row, _)| row == CONTROL);
        let mut suites: Vec<(u64, &str)> = controls
            .filter_map(|(_, suite)| Some((self.control(suite)?, suite.as_str())))
            .collect();
        suites.sort_unstable();
        let line =
            |first: &str, cells: Vec<String>| format!("| {first} | {} |\n", cells.join(" | "));
        let heads = suites
            .iter()
            .map(|(seconds, suite)| format!("{suite} {seconds} s"));
        let mut table = line("mistake", heads.collect());
        table += &format!("|---|{}\n", "---|".repeat(suites.len()));
        for row in rows {
            let mark = |suite: &str| match self.get(row, suite).map_or("", |it| &it.verdict) {
                "" => "",
                BLIND => "/",
                GREEN => "-",
                red if red.starts_with("red") => "x",
                _ => "?",
            };
            let marks = suites.iter().map(|(_, suite)| mark(suite).to_owned());
            table += &line(row, marks.collect());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_a_mark_for_each_suite_that_is_green_without_a_mistake() {
        let log = "(none)\tunit\t1 s\tgreen\n\
                   (none)\tcore\t9 s\tgreen\n\
                   (none)\tsoak\t1 s\tred: a\n\
                   late\tunit\t2 s\tred: b\n\
                   late\tcore\t2 s\tgreen\n\
                   early\tunit\t2 s\tunsure: c\n";
        let mut cells = Cells::parse(log).expect("a log");
        cells.set("never", "unit", 0, BLIND);
        let rows = ["early", "late", "never"].map(str::to_owned);
        assert_eq!(
            cells.table(&rows),
            "| mistake | unit 1 s | core 9 s |\n|---|---|---|\n\
             | early | ? |  |\n| late | x | - |\n| never | / |  |\n"
        );
    }

    #[test]
    fn run_continues_after_the_lines_of_its_log() {
        let directory = std::env::temp_dir().join(format!("matrix-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("it is created");
        let path = directory.join("log");
        let mut log = Log {
            cells: Cells::read(&path).expect("there is none"),
            file: File::create(&path).expect("it is created"),
            page: directory.join("page"),
            rows: vec!["late".to_owned()],
        };
        log.add("(none)", "core", 2, GREEN).expect("it is written");
        log.add("late", "core", 3, GREEN).expect("it is written");
        assert_eq!(Cells::read(&path).expect("a log"), log.cells);
        let page = fs::read_to_string(&log.page).expect("a page");
        assert!(page.ends_with("| late | - |\n"), "{page}");
        assert!(Cells::parse("late\tcore").is_err());
        fs::remove_dir_all(directory).expect("it is removed");
    }
}
