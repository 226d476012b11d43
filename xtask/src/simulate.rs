//! `cargo xtask simulate`: the recipes under random schedules of faults, and proof that the
//! schedules find known mistakes.

use std::env::consts::EXE_EXTENSION;
use std::path::PathBuf;
use std::process::Command;

use crate::cargo::{cargo, root, run as run_command, target};
use crate::mutants;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Only this recipe.
    #[arg(long)]
    recipe: Option<String>,

    /// The number of seeds per recipe.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,

    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,

    /// Let some faults be permanent: of a minority of the servers, and of some processes. All other
    /// processes must make progress.
    #[arg(long)]
    never_heals: bool,

    /// Add the totals to this file, and resume after the seeds that it has. `--seeds` is the final
    /// number per recipe.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "first"])]
    tally: Option<PathBuf>,

    /// Replay this seed alone, and print its trace.
    #[arg(long)]
    seed: Option<u64>,

    /// Instead, put the known mistakes into a copy of the workspace, and check that its test or the
    /// seeds of its recipe find each of them: all mistakes, or the mistakes whose names contain a
    /// NAME. The copy is built once. Each test and each recipe first passes without a mistake.
    /// `--seeds` bounds how many seeds are tried. A run that was stopped continues, if no file has
    /// changed since.
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..,
        conflicts_with_all = ["recipe", "seed", "first", "never_heals", "tally"],
    )]
    mutants: Option<Vec<String>>,

    /// Only compile the mistakes.
    #[arg(long, requires = "mutants", conflicts_with = "matrix")]
    check: bool,

    /// Run each mistake against each suite of the workspace. Each result is a line of FILE, so that
    /// a run can be stopped and continues. The table is written to a page beside FILE. It takes
    /// hours.
    #[arg(long, value_name = "FILE", requires = "mutants")]
    matrix: Option<PathBuf>,

    /// Of the matrix, only these suites.
    #[arg(long, value_name = "SUITE", num_args = 1.., requires = "matrix")]
    suites: Vec<String>,
}

/// Runs the seeds. The call fails if a promise is not kept.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(names) = &arguments.mutants {
        return match &arguments.matrix {
            _ if arguments.check => mutants::check(),
            Some(log) => mutants::run_matrix(names, log, &arguments.suites),
            None => mutants::run(names, arguments.seeds),
        };
    }
    run_command(&mut command(arguments))
}

/// The seeds that every change has to pass, beside those that the tests of the package run.
///
/// The program is that of the [build of the tests](crate::test::build). A build with optimisation
/// takes longer than it saves.
pub(crate) fn command_for_ci() -> Command {
    let program = target()
        .join("debug")
        .join("simulate")
        .with_extension(EXE_EXTENSION);
    let mut command = Command::new(program);
    command.current_dir(root());
    command.args(["--first", "36", "--seeds", "4"]);
    command
}

/// The command that runs the seeds, optimised: a seed takes a tenth of the time.
fn command(arguments: &Arguments) -> Command {
    // A run with a tally takes hours, and is worth a longer build.
    let profile = match arguments.tally {
        Some(_) => "seeds",
        None => "release",
    };
    let mut command = cargo(&["run", "--quiet", "--profile", profile]);
    command.args(["--package", mutants::SCHEDULES, "--"]);
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
