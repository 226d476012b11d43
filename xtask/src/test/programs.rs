//! The test programs of the whole workspace, several at a time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::cargo::{cargo, lowered, target};
use crate::processes::complaints;
use crate::threads;

/// How many programs run at the same time. Two thirds of the time they wait for their servers.
const AT_A_TIME: usize = 3;

/// The directories of the packages whose tests only compute. Their time is simulated, and the real
/// time is that of the other tests. So they run beside all others, with the lowest priority.
const COMPUTE: [&str; 3] = ["models", "schedules", "shuttle"];

/// How many of them run at the same time: they compute on after the others have ended.
const COMPUTE_AT_A_TIME: usize = 2;

/// What cargo says of a target that it has built.
#[derive(Debug, Deserialize)]
pub(crate) struct Artifact {
    package_id: String,
    manifest_path: PathBuf,
    target: Named,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// A command that runs tests.
#[derive(Debug)]
pub(crate) struct Program {
    name: String,
    command: Command,
    /// True if its arguments are those of Rust's test harness.
    takes_filters: bool,
    only_computes: bool,
}

/// Builds all tests and all examples.
///
/// The programs come in the order in which they are to begin: first the programs of the `long`
/// packages, in their order.
pub(super) fn build(long: &[&str]) -> anyhow::Result<Vec<Program>> {
    let mut artifacts = Vec::new();
    for mut command in [cargo(&["test", "--workspace"]), threads::cargo(&["test"])] {
        command.args(["--locked", "--no-run"]);
        command.args(["--message-format", "json-render-diagnostics"]);
        artifacts.extend(built_by(&mut command)?);
    }
    let place = |artifact: &Artifact| long.iter().position(|it| artifact.package() == *it);
    artifacts.sort_by_key(|artifact| place(artifact).unwrap_or(long.len()));
    let mut programs: Vec<Program> = artifacts.into_iter().filter_map(program).collect();
    // The last of them compiles for longer than any other runs.
    programs.insert(0, doc_tests());
    Ok(programs)
}

/// The targets that a call of cargo has built, in its order.
pub(crate) fn built_by(command: &mut Command) -> anyhow::Result<Vec<Artifact>> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the tests cannot be built ({})", output.status);
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let artifacts = messages
        .lines()
        .filter(|line| line.contains(r#""reason":"compiler-artifact""#));
    artifacts
        .map(|line| serde_json::from_str(line).with_context(|| format!("cargo says {line}")))
        .collect()
}

impl Artifact {
    pub(crate) fn package(&self) -> &str {
        let (path, id) = self
            .package_id
            .split_once('#')
            .unwrap_or(("", &self.package_id));
        match id.split_once('@') {
            Some((name, _)) => name,
            None => path.rsplit('/').next().unwrap_or_default(),
        }
    }

    /// The name of the integration test. `None` for tests inside a library or a program.
    pub(crate) fn integration_test(&self) -> Option<&str> {
        let is_integration = self.target.kind.iter().any(|kind| kind == "test");
        is_integration.then_some(self.target.name.as_str())
    }

    /// True if it is the library's own tests.
    pub(crate) fn is_library(&self) -> bool {
        self.target.kind.iter().any(|kind| kind == "lib")
    }

    pub(crate) fn is_test(&self) -> bool {
        self.profile.test && self.executable.is_some()
    }

    /// Runs its tests, in the directory that cargo runs them in.
    pub(crate) fn command(&self) -> Command {
        let executable = self.executable.as_deref().unwrap_or(Path::new(""));
        let mut command = Command::new(executable);
        command.current_dir(self.directory());
        command
    }

    fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new(""))
    }
}

/// The program of a target; `None` if it is no test.
fn program(artifact: Artifact) -> Option<Program> {
    if !artifact.is_test() {
        return None;
    }
    let directory = artifact.directory().file_name()?.to_string_lossy();
    let only_computes = COMPUTE.contains(&&*directory);
    let command = artifact.command();
    Some(Program {
        name: format!("{directory}: {}", artifact.target.name),
        command: match only_computes {
            true => lowered(&command),
            false => command,
        },
        takes_filters: artifact.integration_test().is_some(),
        only_computes,
    })
}

fn doc_tests() -> Program {
    Program {
        name: "doc tests".to_owned(),
        takes_filters: false,
        only_computes: false,
        command: cargo(&["test", "--workspace", "--locked", "--doc", "--no-fail-fast"]),
    }
}

/// Runs all programs, each with what `prepare` adds to its command. The call prints the output of
/// each program when that ends. It fails if one of them fails, once all have ended.
pub(super) fn run(
    programs: Vec<Program>,
    prepare: impl Fn(&mut Command) + Sync,
) -> anyhow::Result<()> {
    let outputs = target().join("test-output");
    fs::create_dir_all(&outputs).with_context(|| format!("cannot create {outputs:?}"))?;
    let run = |(number, mut program): (usize, Program)| {
        prepare(&mut program.command);
        let output = outputs.join(format!("{number}.txt"));
        let error = program.run(&output).err()?;
        println!("== {}: {error:#}", program.name);
        Some(program.name)
    };
    let programs = programs.into_iter().enumerate();
    let (compute, wait): (Vec<_>, Vec<_>) = programs.partition(|(_, it)| it.only_computes);
    let failed = thread::scope(|scope| {
        let computed = scope.spawn(|| complaints(COMPUTE_AT_A_TIME, compute, run));
        let mut failed = complaints(AT_A_TIME, wait, run);
        failed.extend(computed.join().expect("no test runs in this thread"));
        failed
    });
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("tests failed in {}", failed.join(", ")),
    }
}

impl Program {
    /// A command that runs beside the programs that wait, with the lowest priority.
    pub(crate) fn computing(name: &str, command: &Command) -> Program {
        Program {
            name: name.to_owned(),
            command: lowered(command),
            takes_filters: false,
            only_computes: true,
        }
    }

    /// Leaves out the tests whose names contain this.
    pub(super) fn skip(&mut self, part: &str) {
        if self.takes_filters {
            self.command.args(["--skip", part]);
        }
    }

    /// Runs it to its end, then prints what it has written to both its outputs.
    fn run(&mut self, output: &Path) -> anyhow::Result<()> {
        let began = Instant::now();
        let file = File::create(output).with_context(|| format!("cannot create {output:?}"))?;
        let errors = file.try_clone().context("cannot take its output twice")?;
        let status = self.command.stdout(file).stderr(errors).status();
        let text = fs::read(output).with_context(|| format!("cannot read {output:?}"))?;
        let took = began.elapsed().as_secs_f64();
        // The output goes out in one piece, since other programs print, too.
        print!(
            "== {}: {took:.1} s\n{}",
            self.name,
            String::from_utf8_lossy(&text)
        );
        let status = status.context("it cannot be run")?;
        match status.success() {
            true => Ok(()),
            false => bail!("failed ({status})"),
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/programs.rs"]
mod tests;
