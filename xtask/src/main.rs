//! The project's tasks: `cargo xtask <task>`.

mod bench;
mod cargo;
mod ci;
mod contest;
mod demo;
mod install;
mod kazoo;
mod licences;
mod referee;
mod simulate;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what the other tasks need, where it is missing: a ZooKeeper server, a Java runtime,
    /// and for the interoperability tests and the bench of the peers Curator, a Java compiler and
    /// kazoo.
    Install,
    /// Watch contenders pass a lock on a real server in four ways, and see what each way costs.
    Demo(demo::Arguments),
    /// Run all tests, doc tests and examples included, on real servers.
    Test(test::Arguments),
    /// Measure what the recipes cost, and write a report.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Run the recipes under random schedules of faults, on a simulated ensemble.
    Simulate(simulate::Arguments),
    /// Check the licence of every dependency against deny.toml.
    Licences,
    /// Run every check that a change has to pass: format, lints, documentation, licences, each
    /// crate alone, tests, simulation.
    Ci,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Install => install::run().map(|()| install::run_peers()),
        Task::Demo(arguments) => demo::run(&arguments),
        Task::Test(arguments) => test::run(&arguments),
        Task::Bench(bench) => bench::run(&bench),
        Task::Simulate(arguments) => simulate::run(&arguments),
        Task::Licences => licences::run(),
        Task::Ci => ci::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
