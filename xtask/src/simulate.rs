//! `cargo xtask simulate`: the recipes under random schedules of faults, and proof that the
//! schedules find known mistakes.

use std::collections::BTreeSet;
use std::env::consts::EXE_EXTENSION;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, bail};

use crate::cargo::{InBackground, cargo, line, root, run as run_command, target};

const PACKAGE: &str = "zookeeper-recipes-schedules";

/// A test that runs longer than this, once it is built, has failed.
const LONGEST_TEST: Duration = Duration::from_secs(300);

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Only this recipe.
    #[arg(long)]
    recipe: Option<String>,

    /// How many seeds each recipe is run with.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,

    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,

    /// Have some faults never heal: of a minority of the servers, and of some processes. All other
    /// processes must make progress.
    #[arg(long)]
    never_heals: bool,

    /// Sum up in this file, and continue after the seeds that it has. `--seeds` is how many each
    /// recipe has in the end.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "first"])]
    tally: Option<PathBuf>,

    /// Replay this seed alone, and print its trace.
    #[arg(long)]
    seed: Option<u64>,

    /// Instead, put known mistakes back into a copy of the workspace, one at a time, and check that
    /// its test or the seeds of its recipe find each of them: all mistakes, or the mistakes whose
    /// names contain a NAME. Each test and each recipe first passes once without a mistake.
    /// `--seeds` bounds how many seeds are tried.
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..,
        conflicts_with_all = ["recipe", "seed", "first", "never_heals", "tally"],
    )]
    mutants: Option<Vec<String>>,
}

/// Runs the seeds. The call fails if a promise is not kept.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(names) = &arguments.mutants {
        return run_mutants(names, arguments.seeds);
    }
    run_command(&mut command(arguments))
}

/// Starts the seeds that every change has to pass, with the lowest priority. The tests of the
/// package run the seeds whose faults never heal.
///
/// The program is that of the [build of the tests](crate::test::build). A build with optimisation
/// takes longer than it saves.
pub(crate) fn begin_for_ci() -> anyhow::Result<InBackground> {
    let program = target()
        .join("debug")
        .join("simulate")
        .with_extension(EXE_EXTENSION);
    // So few that the tests keep their time on two cores. More seeds are run by hand.
    InBackground::begin(Command::new(program).args(["--seeds", "250"]))
}

/// The command that runs the seeds, optimised: a seed takes a tenth of the time.
fn command(arguments: &Arguments) -> Command {
    // A run with a tally takes hours, and is worth a longer build.
    let profile = match arguments.tally {
        Some(_) => "seeds",
        None => "release",
    };
    let mut command = cargo(&["run", "--quiet", "--profile", profile]);
    command.args(["--package", PACKAGE, "--"]);
    if let Some(recipe) = &arguments.recipe {
        command.args(["--recipe", recipe]);
    }
    if arguments.never_heals {
        command.arg("--never-heals");
    }
    let seeds = arguments.seeds.to_string();
    match (arguments.seed, &arguments.tally) {
        (Some(seed), _) => command.args(["--seed", &seed.to_string()]),
        (None, Some(file)) => command.args(["--seeds", &seeds, "--tally"]).arg(file),
        (None, None) => command
            .args(["--seeds", &seeds])
            .args(["--first", &arguments.first.to_string()]),
    };
    command
}

/// A mistake as a patch, and the seeds of a recipe or the test that find it. Either is enough.
#[derive(Debug)]
struct Mutant {
    name: String,
    recipe: Option<String>,
    /// The arguments of `cargo test`.
    test: Option<String>,
    patch: PathBuf,
}

fn run_mutants(names: &[String], seeds: u64) -> anyhow::Result<()> {
    let directory = root().join("target/mutants");
    let copy = directory.join("workspace");
    if copy.exists() {
        fs::remove_dir_all(&copy).with_context(|| format!("cannot clear {}", copy.display()))?;
    }
    copy_tree(&root(), &copy)?;
    let mut missed = Vec::new();
    let mut mutants = mutants()?;
    mutants.retain(|mutant| names.is_empty() || names.iter().any(|it| mutant.name.contains(it)));
    let copied = Copy {
        workspace: &copy,
        targets: &directory,
    };
    copied.control(&mutants, seeds)?;
    for mutant in mutants {
        apply(&mutant, &copy, &[])?;
        let verdict = match copied.find(&mutant, seeds) {
            Ok(Some(line)) => format!("found, {line}"),
            Ok(None) => "NOT found".to_owned(),
            Err(error) => format!("NOT judged: {error:#}"),
        };
        if verdict.starts_with("NOT") {
            missed.push(mutant.name.clone());
        }
        println!("{}: {verdict}", mutant.name);
        apply(&mutant, &copy, &["--reverse"])?;
    }
    if !missed.is_empty() {
        bail!("not found, or not judged: {}", missed.join(", "));
    }
    Ok(())
}

fn mutants() -> anyhow::Result<Vec<Mutant>> {
    let directory = root().join("tests/schedules/mutants");
    let mut mutants = Vec::new();
    for entry in fs::read_dir(&directory)? {
        let patch = entry?.path();
        let text = fs::read_to_string(&patch)?;
        let header = |key: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(key));
            value.map(str::to_owned)
        };
        let (recipe, test) = (header("recipe: "), header("test: "));
        if recipe.is_none() && test.is_none() {
            bail!("{} names neither a recipe nor a test", patch.display());
        }
        let name = patch.file_stem().unwrap_or_default();
        mutants.push(Mutant {
            name: name.to_string_lossy().into_owned(),
            recipe,
            test,
            patch,
        });
    }
    mutants.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(mutants)
}

/// The tests and the recipes that show these mistakes, each once.
fn shown_by(mutants: &[Mutant]) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let tests = mutants.iter().filter_map(|it| it.test.as_deref());
    let recipes = mutants.iter().filter_map(|it| it.recipe.as_deref());
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

fn apply(mutant: &Mutant, copy: &Path, how: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("git");
    command
        .current_dir(copy)
        // The copy is no part of the repository around it.
        .env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy))
        .arg("apply")
        .args(how)
        .arg("-C2")
        .arg(&mutant.patch);
    run_command(&mut command).with_context(|| format!("{} no longer applies", mutant.name))
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
        let (tests, recipes) = shown_by(mutants);
        require_green(&tests, |test| self.is_red(test))?;
        let is_red = |recipe: &str| Ok(self.violation(recipe, seeds)?.is_some());
        require_green(&recipes, is_red)?;
        let (tests, recipes) = (tests.len(), recipes.len());
        println!("without a mistake: {tests} tests and {recipes} recipes pass");
        Ok(())
    }

    /// Says what has found the mistake, if anything has. The test is quick and runs first.
    fn find(&self, mutant: &Mutant, seeds: u64) -> anyhow::Result<Option<String>> {
        if let Some(test) = &mutant.test {
            if self.is_red(test)? {
                return Ok(Some(format!("red: {test}")));
            }
        }
        match &mutant.recipe {
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
        let build = ["build", "--quiet", "--release", "--package", PACKAGE];
        run_command(&mut self.for_seeds(&build))?;
        let run = ["run", "--quiet", "--release", "--package", PACKAGE, "--"];
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
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "target" || name == ".git" {
            continue;
        }
        let (source, copy) = (entry.path(), to.join(&name));
        if entry.file_type()?.is_dir() {
            copy_tree(&source, &copy)?;
        } else {
            fs::copy(&source, &copy)
                .with_context(|| format!("cannot copy {}", source.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_reach_the_simulation() {
        let arguments = Arguments {
            recipe: Some("lock".to_owned()),
            seed: Some(7),
            never_heals: true,
            ..Arguments::default()
        };
        assert_eq!(
            line(&command(&arguments)),
            "cargo run --quiet --profile release --package zookeeper-recipes-schedules -- \
             --recipe lock --never-heals --seed 7"
        );
    }

    #[test]
    fn run_with_a_tally_is_built_for_hours() {
        let arguments = Arguments {
            seeds: 91_000,
            tally: Some("tally.txt".into()),
            ..Arguments::default()
        };
        assert_eq!(
            line(&command(&arguments)),
            "cargo run --quiet --profile seeds --package zookeeper-recipes-schedules -- \
             --seeds 91000 --tally tally.txt"
        );
    }

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
        let mutant = |recipe: Option<&str>, test: Option<&str>| Mutant {
            name: "mutant".to_owned(),
            recipe: recipe.map(str::to_owned),
            test: test.map(str::to_owned),
            patch: PathBuf::new(),
        };
        let mutants = [
            mutant(Some("lock"), None),
            mutant(Some("lock"), Some("-p one")),
            mutant(None, Some("-p one")),
            mutant(None, Some("-p two")),
        ];
        let (tests, recipes) = shown_by(&mutants);
        assert_eq!(tests, BTreeSet::from(["-p one", "-p two"]));
        assert_eq!(recipes, BTreeSet::from(["lock"]));
        assert!(require_green(&tests, |_| Ok(false)).is_ok());
        let error = require_green(&tests, |test| Ok(test == "-p two"));
        let text = error.expect_err("one is red").to_string();
        assert_eq!(text, "red without a mistake: -p two");
    }

    #[test]
    fn every_mutant_fits_the_code_and_names_what_shows_it() {
        let mutants = mutants().expect("the mutants can be read");
        assert!(!mutants.is_empty());
        for mutant in mutants {
            let mut command = Command::new("git");
            command
                .current_dir(root())
                .args(["apply", "--check", "-C1"])
                .arg(&mutant.patch);
            run_command(&mut command).expect("it fits");
        }
    }
}
