//! Puts known mistakes into a copy of the workspace, and runs what finds each. The copy is built
//! once: a variable of the environment chooses the mistake of a process.

mod copy;
mod matrix;
mod mutant;
mod outcome;
mod source;
mod verdicts;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use self::copy::Copy;
use self::mutant::{Detector, Mutant};
pub(crate) use self::outcome::SCHEDULES;
use self::outcome::{AT_A_TIME, first_failure, with};
use self::verdicts::Verdicts;
use crate::cargo::{lowered, root};
use crate::processes::complaints;
use crate::test::Artifact;

/// A test that runs longer than this has failed.
const LONGEST_TEST: Duration = Duration::from_secs(300);

/// Compiles all mutants, and runs none.
pub(crate) fn check() -> anyhow::Result<()> {
    copy::check(&mutant::read(&root())?)
}

/// Runs all mutants, or those whose names contain one of these. `seeds` bounds how many seeds of a
/// recipe are tried. A run that was stopped continues, if no file has changed since.
///
/// The call fails if a mutant is not found.
pub(crate) fn run(names: &[String], seeds: u64) -> anyhow::Result<()> {
    let mutants = mutant::read(&root())?;
    let copy = Copy::build(&mutants)?;
    let mutants = named(mutants, names);
    let verdicts = Verdicts::read(copy::verdicts())?;
    let runs = Runs {
        copy,
        seeds,
        verdicts,
    };
    runs.control(&mutants)?;
    let missed = complaints(AT_A_TIME, &mutants, |mutant| {
        let verdict = runs.verdicts.of(&mutant.name, || {
            let line = runs.find(mutant)?;
            Ok(line.map_or_else(|| "NOT found".to_owned(), |line| format!("found, {line}")))
        });
        let verdict = verdict.unwrap_or_else(|error| format!("NOT judged: {error:#}"));
        println!("{}: {verdict}", mutant.name);
        verdict.starts_with("NOT").then(|| mutant.name.clone())
    });
    ensure!(
        missed.is_empty(),
        "not found, or not judged: {}",
        missed.join(", ")
    );
    Ok(())
}

/// The mutants whose names contain one of these, or all mutants.
fn named(mut mutants: Vec<Mutant>, names: &[String]) -> Vec<Mutant> {
    mutants.retain(|mutant| names.is_empty() || names.iter().any(|it| mutant.name.contains(it)));
    mutants
}

/// Runs the same mutants against each suite, or against those of these names, and keeps what each
/// has found in `log`: see [`matrix::run`].
pub(crate) fn run_matrix(names: &[String], log: &Path, suites: &[String]) -> anyhow::Result<()> {
    let mutants = mutant::read(&root())?;
    let copy = Copy::build(&mutants)?;
    matrix::run(copy, &named(mutants, names), suites, log)
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
    verdicts: &Verdicts,
    failure: impl Fn(&str) -> anyhow::Result<Option<String>> + Sync,
) -> anyhow::Result<()> {
    let red = complaints(AT_A_TIME, all, |name| {
        let verdict = verdicts.of(&format!("without a mistake: {name}"), || {
            let failure = failure(name)?;
            failure.map_or_else(|| Ok("green".to_owned()), |it| bail!("{it}"))
        });
        verdict.err().map(|error| format!("{name}: {error:#}"))
    });
    ensure!(red.is_empty(), "red without a mistake: {}", red.join("; "));
    Ok(())
}

struct Runs {
    copy: Copy,
    /// How many seeds of a recipe are tried.
    seeds: u64,
    verdicts: Verdicts,
}

impl Runs {
    /// Runs each test and each recipe of these mistakes once, without a mistake.
    ///
    /// The call fails if one is red: it is red with each mistake, and proves nothing.
    fn control(&self, mutants: &[Mutant]) -> anyhow::Result<()> {
        let (tests, recipes) = each_once(mutants.iter().map(|it| &it.detector));
        require_green(&tests, &self.verdicts, |test| self.failure(test, None))?;
        require_green(&recipes, &self.verdicts, |recipe| {
            self.violation(recipe, None)
        })?;
        let (tests, recipes) = (tests.len(), recipes.len());
        println!("without a mistake: {tests} tests and {recipes} recipes pass");
        Ok(())
    }

    /// Says what has found the mistake, if anything has. The test is quick and runs first.
    fn find(&self, mutant: &Mutant) -> anyhow::Result<Option<String>> {
        if let Some(test) = &mutant.detector.test {
            if let Some(failure) = self.failure(test, Some(mutant))? {
                return Ok(Some(format!("{test}: {failure}")));
            }
        }
        match &mutant.detector.seeds {
            Some(recipe) => self.violation(recipe, Some(mutant)),
            None => Ok(None),
        }
    }

    /// How a test fails, or that it does not end.
    fn failure(&self, test: &str, mutant: Option<&Mutant>) -> anyhow::Result<Option<String>> {
        let (program, filter) = self.program(test)?;
        let mut command = lowered(&program.command());
        first_failure(with(command.args(filter), mutant), LONGEST_TEST)
    }

    /// The program that these arguments of `cargo test` name, and the arguments that it gets.
    fn program<'t>(&self, test: &'t str) -> anyhow::Result<(&Artifact, Option<&'t str>)> {
        let words: Vec<&str> = test.split_whitespace().collect();
        let (package, target, filter) = match words[..] {
            ["-p", package, "--lib", ref filter @ ..] => (package, None, filter),
            ["-p", package, "--test", target, ref filter @ ..] => (package, Some(target), filter),
            [
                "--manifest-path",
                manifest,
                "--test",
                target,
                ref filter @ ..,
            ] => {
                let member = manifest.trim_end_matches("/Cargo.toml");
                (
                    member.rsplit('/').next().unwrap_or(member),
                    Some(target),
                    filter,
                )
            }
            _ => bail!("not a test of a library or an integration test: {test}"),
        };
        let is_named = |program: &&Artifact| {
            let is_of_package = program.package() == package
                || program.package().strip_prefix("zookeeper-recipes-") == Some(package);
            let is_target = match target {
                None => program.is_library(),
                Some(_) => program.integration_test() == target,
            };
            is_of_package && is_target
        };
        let program = self.copy.programs.iter().find(is_named);
        let program = program.with_context(|| format!("there is no program for {test}"))?;
        Ok((program, filter.first().copied()))
    }

    /// Runs the seeds. Names the seed and the violation if one was found.
    fn violation(&self, recipe: &str, mutant: Option<&Mutant>) -> anyhow::Result<Option<String>> {
        let seeds = self.seeds.to_string();
        let mut command = lowered(&Command::new(&self.copy.simulation));
        command.args(["--recipe", recipe, "--seeds", &seeds]);
        let output = with(&mut command, mutant).output();
        let output = output.context("cannot run the simulation")?;
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
#[path = "../tests/unit/mutants.rs"]
mod tests;
