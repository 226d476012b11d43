//! Puts known mistakes back into a copy of the workspace, one at a time, and runs what finds each.

mod copy;
mod matrix;
mod mutant;
mod outcome;
mod source;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use self::copy::{Copy, exchange};
use self::mutant::{Detector, Mutant};
use self::outcome::first_failure;
use crate::cargo::{root, run as run_command};

/// The package of the simulation.
pub(crate) const SCHEDULES: &str = "zookeeper-recipes-schedules";

/// A test that runs longer than this, once it is built, has failed.
const LONGEST_TEST: Duration = Duration::from_secs(300);

/// Runs all mutants, or those whose names contain one of these. `seeds` bounds how many seeds of a
/// recipe are tried.
///
/// The call fails if a mutant is not found.
pub(crate) fn run(names: &[String], seeds: u64) -> anyhow::Result<()> {
    let mutants = named(names)?;
    let copy = Copy::new()?;
    let texts = copy.texts(&mutants)?;
    let runs = Runs { copy, seeds };
    runs.control(&mutants)?;
    let mut missed = Vec::new();
    for (mutant, texts) in mutants.iter().zip(texts) {
        let originals = exchange(texts)?;
        let verdict = match runs.find(mutant) {
            Ok(Some(line)) => format!("found, {line}"),
            Ok(None) => "NOT found".to_owned(),
            Err(error) => format!("NOT judged: {error:#}"),
        };
        if verdict.starts_with("NOT") {
            missed.push(mutant.name.as_str());
        }
        println!("{}: {verdict}", mutant.name);
        exchange(originals)?;
    }
    if !missed.is_empty() {
        bail!("not found, or not judged: {}", missed.join(", "));
    }
    Ok(())
}

/// The mutants whose names contain one of these, or all mutants.
fn named(names: &[String]) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants = mutant::read(&root())?;
    mutants.retain(|mutant| names.is_empty() || names.iter().any(|it| mutant.name.contains(it)));
    Ok(mutants)
}

/// Runs the same mutants against each suite, or against those of these names, and keeps what each
/// has found in `log`: see [`matrix::run`].
pub(crate) fn run_matrix(names: &[String], log: &Path, suites: &[String]) -> anyhow::Result<()> {
    let (mutants, suites) = (named(names)?, matrix::suites(suites)?);
    matrix::run(&mutants, &suites, &Copy::new()?, log)
}

/// The tests and the recipes among these, each once.
fn each_once<'m>(
    detectors: impl Iterator<Item = &'m Detector> + Clone,
) -> (BTreeSet<&'m str>, BTreeSet<&'m str>) {
    let tests = detectors.clone().filter_map(|it| it.test.as_deref());
    let recipes = detectors.filter_map(|it| it.seeds.as_deref());
    (tests.collect(), recipes.collect())
}

/// Fails if some of these are red. The error names them.
fn require_green(
    all: &BTreeSet<&str>,
    is_red: impl Fn(&str) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut red = Vec::new();
    for name in all {
        if is_red(name)? {
            red.push(*name);
        }
    }
    if !red.is_empty() {
        bail!("red without a mistake: {}", red.join("; "));
    }
    Ok(())
}

/// The runs of tests and of seeds in a copy of the workspace.
struct Runs {
    copy: Copy,
    /// How many seeds of a recipe are tried.
    seeds: u64,
}

impl Runs {
    /// A call of cargo for a single test. To build it takes longer than to run it.
    fn for_a_test(&self, arguments: &[&str]) -> Command {
        self.copy.cargo("tests", "0", arguments)
    }

    /// A call of cargo for many seeds.
    fn for_seeds(&self, arguments: &[&str]) -> Command {
        self.copy.cargo("seeds", "1", arguments)
    }

    /// Runs each test and each recipe of these mistakes once, on the unchanged copy.
    ///
    /// The call fails if one is red: it is red with each mistake, and proves nothing.
    fn control(&self, mutants: &[Mutant]) -> anyhow::Result<()> {
        let (tests, recipes) = each_once(mutants.iter().map(|it| &it.detector));
        require_green(&tests, |test| self.is_red(test))?;
        let is_red = |recipe: &str| Ok(self.violation(recipe)?.is_some());
        require_green(&recipes, is_red)?;
        let (tests, recipes) = (tests.len(), recipes.len());
        println!("without a mistake: {tests} tests and {recipes} recipes pass");
        Ok(())
    }

    /// Says what has found the mistake, if anything has. The test is quick and runs first.
    fn find(&self, mutant: &Mutant) -> anyhow::Result<Option<String>> {
        if let Some(test) = &mutant.detector.test {
            if self.is_red(test)? {
                return Ok(Some(format!("red: {test}")));
            }
        }
        match &mutant.detector.seeds {
            Some(recipe) => self.violation(recipe),
            None => Ok(None),
        }
    }

    /// Whether a test fails, or does not end, once it is built.
    fn is_red(&self, test: &str) -> anyhow::Result<bool> {
        let mut arguments = vec!["test", "--release"];
        arguments.extend(test.split_whitespace());
        // A quiet test would not name what fails first.
        run_command(self.for_a_test(&arguments).args(["--no-run", "--quiet"]))?;
        let failure = first_failure(&mut self.for_a_test(&arguments), LONGEST_TEST)?;
        Ok(failure.is_some())
    }

    /// Runs the seeds. Names the seed and the violation if one was found.
    fn violation(&self, recipe: &str) -> anyhow::Result<Option<String>> {
        let build = ["build", "--quiet", "--release", "--package", SCHEDULES];
        run_command(&mut self.for_seeds(&build))?;
        let run = ["run", "--quiet", "--release", "--package", SCHEDULES, "--"];
        let output = self
            .for_seeds(&run)
            .args(["--recipe", recipe, "--seeds", &self.seeds.to_string()])
            .output()
            .context("cannot run the simulation")?;
        if output.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let seed = text.lines().find(|line| line.contains(", seed "));
        let violation = text.lines().find(|line| line.starts_with("VIOLATION "));
        match (seed, violation) {
            (Some(seed), Some(violation)) => {
                let seed = seed.split(':').next().unwrap_or(seed);
                Ok(Some(format!("{seed}: {violation}")))
            }
            _ => bail!(
                "{recipe}: the simulation failed in another way:\n{text}{}",
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::copy::{all_texts, tree};
    use super::*;

    #[test]
    fn each_test_and_recipe_is_a_control_once_and_a_red_one_is_named() {
        let detector = |seeds: Option<&str>, test: Option<&str>| Detector {
            test: test.map(str::to_owned),
            seeds: seeds.map(str::to_owned),
        };
        let detectors = [
            detector(Some("lock"), None),
            detector(Some("lock"), Some("-p one")),
            detector(None, Some("-p one")),
            detector(None, Some("-p two")),
        ];
        let (tests, recipes) = each_once(detectors.iter());
        assert_eq!(tests, BTreeSet::from(["-p one", "-p two"]));
        assert_eq!(recipes, BTreeSet::from(["lock"]));
        assert!(require_green(&tests, |_| Ok(false)).is_ok());
        let error = require_green(&tests, |test| Ok(test == "-p two"));
        let text = error.expect_err("one is red").to_string();
        assert_eq!(text, "red without a mistake: -p two");
    }

    #[test]
    fn every_mutant_applies_to_the_sources() {
        let mutants = mutant::read(&root()).expect("the mutants can be read");
        if let Err(error) = all_texts(&mutants, &root()) {
            panic!("{error}");
        }
    }

    #[test]
    fn every_test_that_finds_a_mutant_exists() {
        let sources = tree(&root()).expect("the workspace can be listed");
        let sources = sources
            .iter()
            .filter(|file| file.extension() == Some("rs".as_ref()));
        let sources: Vec<String> = sources
            .map(|file| fs::read_to_string(root().join(file)).expect("it can be read"))
            .collect();
        let mutants = mutant::read(&root()).expect("the mutants can be read");
        for test in each_once(mutants.iter().map(|it| &it.detector)).0 {
            let name = test.split([' ', ':']).rfind(|part| !part.is_empty());
            let name = name.unwrap_or_default();
            let exists = sources.iter().any(|source| source.contains(name));
            assert!(exists, "no source has {name}, of {test}");
        }
    }
}
