//! Which suites find which mistakes.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::copy::{Copy, exchange};
use super::mutant::Mutant;
use super::outcome::first_failure;

/// A name, and a call of cargo.
pub(super) type Suite = (&'static str, &'static str);

/// The suites, the quick ones first.
const SUITES: [Suite; 17] = [
    ("unit", "test --workspace --lib"),
    (
        "connection",
        "test -p zookeeper-recipes-connection --test *",
    ),
    ("core", "test -p zookeeper-recipes-core --test *"),
    ("lock", "test -p zookeeper-recipes-lock --test *"),
    ("rwlock", "test -p zookeeper-recipes-rwlock --test *"),
    ("semaphore", "test -p zookeeper-recipes-semaphore --test *"),
    ("election", "test -p zookeeper-recipes-election --test *"),
    ("group", "test -p zookeeper-recipes-group --test *"),
    (
        "assignment",
        "test -p zookeeper-recipes-assignment --test *",
    ),
    ("adapter", "test -p zookeeper-recipes-adapter --test *"),
    ("suite", "test -p zookeeper-recipes-suite --test *"),
    (
        "seeds",
        "run -p zookeeper-recipes-schedules --bin simulate -- --seeds 250",
    ),
    ("schedules", "test -p zookeeper-recipes-schedules --test *"),
    ("models", "test -p zookeeper-recipes-models --test *"),
    ("faults", "test -p zookeeper-recipes-faults --test *"),
    ("interop", "test -p zookeeper-recipes-interop --test *"),
    ("soak", "test -p zookeeper-recipes-soak --test *"),
];

/// The name of the row without a mistake.
const CONTROL: &str = "(none)";

/// A suite that runs longer, once it is built, has failed.
const LONGEST: Duration = Duration::from_secs(900);

/// What each suite has found, by the mutant and the suite.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cells(BTreeMap<(String, String), String>);

/// The suites of these names, or all suites.
pub(super) fn suites(names: &[String]) -> anyhow::Result<Vec<Suite>> {
    let all = SUITES.into_iter().map(|(suite, _)| suite);
    for name in names {
        let known: Vec<&str> = all.clone().collect();
        ensure!(
            known.contains(&name.as_str()),
            "no suite is named {name}; there are {known:?}"
        );
    }
    let is_named = |(suite, _): &Suite| names.is_empty() || names.iter().any(|it| it == suite);
    Ok(SUITES.into_iter().filter(is_named).collect())
}

/// Runs each suite with each of these mutants, and first without one. A suite stops at its first
/// failure. Prints the table.
///
/// Each result is a line of `log`, which the next run reads. So a run can be stopped and goes on,
/// and a line that is deleted is run again. A suite that is red without a mistake is left out.
///
/// The call fails at the end if a suite was left out, or if none has found some mutant.
pub(super) fn run(
    mutants: &[Mutant],
    suites: &[Suite],
    copy: &Copy,
    log: &Path,
) -> anyhow::Result<()> {
    let texts = copy.texts(mutants)?;
    let mut cells = Cells::read(log)?;
    let file = OpenOptions::new().create(true).append(true).open(log);
    let mut file = file.with_context(|| format!("cannot open {}", log.display()))?;
    for (suite, call) in suites {
        run_cell(&mut cells, &mut file, (CONTROL, suite), || {
            judge(copy, call)
        })?;
    }
    let counted: Vec<&Suite> = suites.iter().filter(|it| cells.counts(it.0)).collect();
    for (mutant, texts) in mutants.iter().zip(texts) {
        let name = mutant.name.as_str();
        let mut missing = counted
            .iter()
            .filter(|(suite, _)| cells.verdict(name, suite).is_empty());
        if missing.next().is_none() {
            continue;
        }
        let originals = exchange(texts)?;
        for (suite, call) in &counted {
            run_cell(&mut cells, &mut file, (name, suite), || judge(copy, call))?;
        }
        exchange(originals)?;
    }
    let names: Vec<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    let counted: Vec<&str> = counted.iter().map(|(suite, _)| *suite).collect();
    print!("{}", cells.table(&names, &counted));
    let left_out = suites.iter().map(|(suite, _)| *suite);
    let left_out: Vec<&str> = left_out.filter(|suite| !counted.contains(suite)).collect();
    ensure!(
        left_out.is_empty(),
        "red without a mistake, and left out: {}",
        left_out.join(", ")
    );
    cells.require_findings(&names, &counted)
}

/// Runs a suite if the log does not have it, and writes what it has found to the log.
fn run_cell(
    cells: &mut Cells,
    log: &mut impl Write,
    (mutant, suite): (&str, &str),
    judge: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let key = (mutant.to_owned(), suite.to_owned());
    if cells.0.contains_key(&key) {
        return Ok(());
    }
    let began = Instant::now();
    let verdict = judge()?;
    let seconds = began.elapsed().as_secs();
    let line = format!("{mutant}\t{suite}\t{seconds} s\t{verdict}");
    println!("{line}");
    writeln!(log, "{line}").context("cannot write the log")?;
    cells.0.insert(key, verdict);
    Ok(())
}

/// Builds a suite and runs it: `green`, `red` with the first failure, or `does not build`.
fn judge(copy: &Copy, call: &str) -> anyhow::Result<String> {
    let words: Vec<&str> = call.split_whitespace().collect();
    let build: Vec<&str> = match words[..] {
        ["run", ref rest @ ..] => {
            let own = rest.iter().take_while(|word| **word != "--");
            ["build"].into_iter().chain(own.copied()).collect()
        }
        _ => [&words[..], &["--no-run"]].concat(),
    };
    let cargo = |arguments: &[&str]| copy.cargo("matrix", "0", arguments);
    let built = cargo(&build).output().context("cannot run cargo")?;
    if !built.status.success() {
        return Ok("does not build".to_owned());
    }
    Ok(match first_failure(&mut cargo(&words), LONGEST)? {
        Some(failure) => format!("red: {failure}"),
        None => "green".to_owned(),
    })
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
            let mut parts = line.splitn(4, '\t');
            let (Some(mutant), Some(suite), Some(_), Some(verdict)) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                bail!("not a line of a matrix: {line}");
            };
            let key = (mutant.to_owned(), suite.to_owned());
            cells.0.insert(key, verdict.to_owned());
        }
        Ok(cells)
    }

    fn verdict(&self, mutant: &str, suite: &str) -> &str {
        let key = (mutant.to_owned(), suite.to_owned());
        self.0.get(&key).map_or("", String::as_str)
    }

    /// True if the suite is green without a mistake. Otherwise its failures prove nothing.
    fn counts(&self, suite: &str) -> bool {
        self.verdict(CONTROL, suite) == "green"
    }

    /// True if one of these suites has found a mutant.
    fn is_found(&self, mutant: &str, suites: &[&str]) -> bool {
        let mut verdicts = suites.iter().map(|suite| self.verdict(mutant, suite));
        verdicts.any(|verdict| verdict.starts_with("red"))
    }

    /// The table in Markdown: `x` where a suite has found the mutant, `-` where it has not.
    fn table(&self, mutants: &[&str], suites: &[&str]) -> String {
        let mut table = format!("| mutant | {} |\n", suites.join(" | "));
        table += &format!("|---|{}\n", "---|".repeat(suites.len()));
        for mutant in mutants {
            let marks = suites
                .iter()
                .map(|suite| match self.verdict(mutant, suite) {
                    "green" => "-",
                    red if red.starts_with("red") => "x",
                    _ => "?",
                });
            let marks: Vec<&str> = marks.collect();
            table += &format!("| {mutant} | {} |\n", marks.join(" | "));
        }
        table
    }

    /// Fails if none of these suites has found some mutant.
    fn require_findings(&self, mutants: &[&str], suites: &[&str]) -> anyhow::Result<()> {
        let missed = mutants.iter().filter(|it| !self.is_found(it, suites));
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

    #[test]
    fn table_has_a_mark_for_each_suite_and_names_what_none_finds() {
        let cells = Cells::parse(
            "(none)\tunit\t1 s\tgreen\n\
             (none)\tsoak\t1 s\tred: test a ... FAILED\n\
             late\tunit\t2 s\tred: test b ... FAILED\n\
             late\tcore\t2 s\tgreen\n\
             early\tunit\t2 s\tdoes not build\n",
        );
        let cells = cells.expect("a log");
        assert!(cells.counts("unit") && !cells.counts("soak") && !cells.counts("lock"));
        let suites = ["unit", "core"];
        assert_eq!(
            cells.table(&["early", "late"], &suites),
            "| mutant | unit | core |\n|---|---|---|\n| early | ? | ? |\n| late | x | - |\n"
        );
        assert!(cells.require_findings(&["late"], &suites).is_ok());
        let error = cells.require_findings(&["early", "late"], &suites);
        let text = error.expect_err("one is missed").to_string();
        assert_eq!(text, "found by no suite: early");
    }

    #[test]
    fn suite_that_is_not_known_is_refused() {
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(suites(&[]).expect("all").len(), SUITES.len());
        assert_eq!(suites(&names(&["soak"])).expect("it is known").len(), 1);
        assert!(suites(&names(&["soak", "other"])).is_err());
    }

    #[test]
    fn run_goes_on_after_the_lines_of_its_log() {
        let (mut log, cell) = (Vec::new(), ("late", "core"));
        let mut cells = Cells::default();
        run_cell(&mut cells, &mut log, cell, || Ok("green".to_owned())).expect("it runs");
        let text = String::from_utf8(log.clone()).expect("a log");
        let mut read = Cells::parse(&text).expect("a log");
        assert_eq!(read, cells);
        run_cell(&mut read, &mut log, cell, || panic!("it is known")).expect("nothing runs");
        assert_eq!(log, text.as_bytes());
        assert!(Cells::parse("late\tcore").is_err());
    }
}
