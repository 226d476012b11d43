//! Puts known mistakes back into a copy of the workspace, one at a time, and runs what finds each.

mod mutant;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, bail};

use self::mutant::{Detector, Mutant, Sources};
use crate::cargo::{cargo, line, root, run as run_command};

/// The package of the simulation.
pub(crate) const SCHEDULES: &str = "zookeeper-recipes-schedules";

/// A test that runs longer than this, once it is built, has failed.
const LONGEST_TEST: Duration = Duration::from_secs(300);

/// Runs all mutants, or those whose names contain one of these. `seeds` bounds how many seeds of a
/// recipe are tried.
///
/// The call fails if a mutant is not found.
pub(crate) fn run(names: &[String], seeds: u64) -> anyhow::Result<()> {
    let mut mutants = mutant::read(&root())?;
    mutants.retain(|mutant| names.is_empty() || names.iter().any(|it| mutant.name.contains(it)));
    let directory = root().join("target/mutants");
    let copy = directory.join("workspace");
    if copy.exists() {
        fs::remove_dir_all(&copy).with_context(|| format!("cannot clear {}", copy.display()))?;
    }
    copy_tree(&root(), &copy)?;
    let texts = all_texts(&mutants, &copy)?;
    let copied = Copy {
        workspace: &copy,
        targets: &directory,
    };
    copied.control(&mutants, seeds)?;
    let mut missed = Vec::new();
    for (mutant, texts) in mutants.iter().zip(texts) {
        let originals = exchange(texts)?;
        let verdict = match copied.find(mutant, seeds) {
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

/// The files that each of these mutants changes, with their texts.
///
/// The call fails if some mutants do not apply. The error names each.
fn all_texts(
    mutants: &[Mutant],
    workspace: &Path,
) -> anyhow::Result<Vec<BTreeMap<PathBuf, String>>> {
    let mut sources = Sources::of(workspace);
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for mutant in mutants {
        match mutant.texts(&mut sources) {
            Ok(texts) => all.push(texts),
            Err(error) => errors.push(format!("{error:#}")),
        }
    }
    if !errors.is_empty() {
        bail!("{}", errors.join("\n"));
    }
    Ok(all)
}

/// Gives these files these texts. Returns the texts that they had.
fn exchange(texts: BTreeMap<PathBuf, String>) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut before = BTreeMap::new();
    for (path, text) in texts {
        before.insert(path.clone(), fs::read_to_string(&path)?);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(before)
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

/// The copy of the workspace for the mistakes.
struct Copy<'a> {
    workspace: &'a Path,
    /// Where the builds are.
    targets: &'a Path,
}

impl Copy<'_> {
    /// A call of cargo for a single test. To build it takes longer than to run it.
    fn for_a_test(&self, arguments: &[&str]) -> Command {
        self.cargo("tests", "0", arguments)
    }

    /// A call of cargo for many seeds.
    fn for_seeds(&self, arguments: &[&str]) -> Command {
        self.cargo("seeds", "1", arguments)
    }

    fn cargo(&self, target: &str, opt_level: &str, arguments: &[&str]) -> Command {
        let mut command = cargo(&["--config", r#"profile.release.package."*".opt-level=1"#]);
        command
            .args(arguments)
            .current_dir(self.workspace)
            .env("CARGO_TARGET_DIR", self.targets.join(target))
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", opt_level);
        command
    }

    /// Runs each test and each recipe of these mistakes once, on the unchanged copy.
    ///
    /// The call fails if one is red: it is red with each mistake, and proves nothing.
    fn control(&self, mutants: &[Mutant], seeds: u64) -> anyhow::Result<()> {
        let (tests, recipes) = each_once(mutants.iter().map(|it| &it.detector));
        require_green(&tests, |test| self.is_red(test))?;
        let is_red = |recipe: &str| Ok(self.violation(recipe, seeds)?.is_some());
        require_green(&recipes, is_red)?;
        let (tests, recipes) = (tests.len(), recipes.len());
        println!("without a mistake: {tests} tests and {recipes} recipes pass");
        Ok(())
    }

    /// Says what has found the mistake, if anything has. The test is quick and runs first.
    fn find(&self, mutant: &Mutant, seeds: u64) -> anyhow::Result<Option<String>> {
        if let Some(test) = &mutant.detector.test {
            if self.is_red(test)? {
                return Ok(Some(format!("red: {test}")));
            }
        }
        match &mutant.detector.seeds {
            Some(recipe) => self.violation(recipe, seeds),
            None => Ok(None),
        }
    }

    /// Whether a test fails, or does not end, once it is built.
    fn is_red(&self, test: &str) -> anyhow::Result<bool> {
        let mut arguments = vec!["test", "--quiet", "--release"];
        arguments.extend(test.split_whitespace());
        run_command(self.for_a_test(&arguments).arg("--no-run"))?;
        Ok(!succeeds_within(
            &mut self.for_a_test(&arguments),
            LONGEST_TEST,
        )?)
    }

    /// Runs the seeds. Names the seed and the violation if one was found.
    fn violation(&self, recipe: &str, seeds: u64) -> anyhow::Result<Option<String>> {
        let build = ["build", "--quiet", "--release", "--package", SCHEDULES];
        run_command(&mut self.for_seeds(&build))?;
        let run = ["run", "--quiet", "--release", "--package", SCHEDULES, "--"];
        let output = self
            .for_seeds(&run)
            .args(["--recipe", recipe, "--seeds", &seeds.to_string()])
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

/// Whether a command succeeds in time. Its output is dropped.
///
/// A command that takes longer is killed, with the processes that it has started.
fn succeeds_within(command: &mut Command, time: Duration) -> anyhow::Result<bool> {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = group::alone(quiet).spawn();
    let mut child = child.with_context(|| format!("cannot run {}", line(command)))?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if started.elapsed() >= time {
            group::kill(&mut child)?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// A command with the processes that it starts.
#[cfg(unix)]
mod group {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process_group};

    pub(super) fn alone(command: &mut Command) -> &mut Command {
        command.process_group(0)
    }

    pub(super) fn kill(child: &mut Child) -> io::Result<()> {
        Ok(kill_process_group(Pid::from_child(child), Signal::KILL)?)
    }
}

/// A command, without the processes that it starts.
#[cfg(not(unix))]
mod group {
    use std::io;
    use std::process::{Child, Command};

    pub(super) fn alone(command: &mut Command) -> &mut Command {
        command
    }

    pub(super) fn kill(child: &mut Child) -> io::Result<()> {
        child.kill()
    }
}

/// Copies the files of the workspace.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    for file in tree(from)? {
        let (source, copy) = (from.join(&file), to.join(&file));
        fs::create_dir_all(copy.parent().unwrap_or(to))?;
        fs::copy(&source, &copy).with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}

/// The files of a workspace, without what is built, by their paths in it.
fn tree(workspace: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(workspace.join(&directory))? {
            let entry = entry?;
            let name = entry.file_name();
            if name == "target" || name == ".git" {
                continue;
            }
            let to = match entry.file_type()?.is_dir() {
                true => &mut directories,
                false => &mut files,
            };
            to.push(directory.join(name));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_that_fails_or_has_no_end_does_not_succeed() {
        let succeeds = |script: &str, time| {
            let mut command = Command::new("sh");
            succeeds_within(command.args(["-c", script]), time).expect("it can be run")
        };
        let (short, long) = (Duration::from_millis(100), Duration::from_secs(60));
        assert!(succeeds("true", long));
        assert!(!succeeds("false", long));
        // The shell waits for a process of its own, as cargo does for a test.
        assert!(!succeeds("sleep 60; true", short));
    }

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
