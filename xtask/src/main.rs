//! The project's tasks: `cargo xtask <task>`.

mod cargo;
mod ci;
mod install;
mod kazoo;
mod licences;
mod mutants;
mod processes;
mod python;
mod simulate;
mod structure;
mod test;
mod threads;
mod workload;

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
    /// Install what the other tasks need: a ZooKeeper server and a Java runtime; Curator, kazoo and a
    /// Java compiler for the interoperability tests and the benches; PostgreSQL for an example.
    Install,
    /// Watch twenty contenders take turns, by four waiting strategies, and see the cost of each.
    #[command(disable_help_flag = true)]
    Demo(workload::Arguments),
    /// Run all tests, doc tests and examples included, on real servers.
    Test(test::Arguments),
    /// Test the page of `zkr serve` in a headless Chromium, and its metrics by promtool. Pictures of
    /// the page are in `target/page` afterwards.
    Page,
    /// Measure the cost of the recipes, and write a report.
    #[command(subcommand)]
    Bench(workload::Bench),
    /// Run the recipes under random schedules of faults, on a simulated ensemble.
    Simulate(simulate::Arguments),
    /// Guard a set with our lock, Curator's and kazoo's, under pauses and partitions, and report the
    /// lost writes of each. Needs Linux and root.
    #[command(disable_help_flag = true)]
    Jepsen(workload::Arguments),
    /// Hold every recipe in processes that are killed and stopped, on a failing ensemble, and report
    /// what an external referee has seen.
    #[command(disable_help_flag = true)]
    Soak(workload::Arguments),
    /// Check the licence and the source of every dependency against deny.toml.
    Licences,
    /// Check that there are no import cycles between source files.
    Structure,
    /// Run every check that a change has to pass: format, licences, structure, lints,
    /// documentation, the crates without features, tests, simulation.
    Ci,
    /// Compile each published crate alone, without features and with all of them.
    Alone,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Install => install::run().map(|()| {
            install::run_peers();
            install::run_stores();
        }),
        Task::Demo(arguments) => workload::demo(&arguments),
        Task::Test(arguments) => test::run(&arguments),
        Task::Page => test::page(),
        Task::Bench(bench) => workload::bench(&bench),
        Task::Simulate(arguments) => simulate::run(&arguments),
        Task::Jepsen(arguments) => workload::jepsen(&arguments),
        Task::Soak(arguments) => workload::soak(&arguments),
        Task::Licences => licences::run(),
        Task::Structure => structure::run(),
        Task::Ci => ci::run(),
        Task::Alone => ci::alone(),
    }
}
