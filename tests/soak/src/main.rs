//! Processes that hold every recipe on an ensemble that fails: `cargo xtask soak`.
//!
//! Each of three processes has one session. In it, it contends for one queue of each recipe, and is
//! a worker of one assignment. The processes are killed, stopped and shut down, and the members of
//! the ensemble are killed, stopped and cut off. A referee in the process of this program judges
//! what the processes report.
//!
//! Each fault comes once. Then the faults come again, in another order each time, until the minutes
//! have passed. After each fault every recipe has to be granted again, and the partitions have to be
//! balanced again.

mod contender;
mod faults;
mod line;
mod order;
mod processes;
mod report;
mod settings;
mod worker;

use std::env;
use std::time::Duration;

use clap::{Parser, Subcommand};
use fastrand::Rng;
use zookeeper_recipes_benches::report::Destination;

use crate::faults::Faults;

/// Processes that hold every recipe on a failing ensemble, checked by an external referee.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask soak", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    process: Option<Process>,

    /// How long to inject faults, in minutes. Each fault comes at least once.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,

    /// The order of the faults. The same seed gives the same order, and not the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    destination: Destination,
}

#[derive(Debug, Subcommand)]
enum Process {
    /// One of the processes that hold the recipes.
    #[command(hide = true)]
    Worker {
        connect: String,
        referee: String,
        id: String,
    },
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match &arguments.process {
        Some(Process::Worker {
            connect,
            referee,
            id,
        }) => runtime(tokio::runtime::Builder::new_current_thread())?
            .block_on(worker::run(connect, referee, id)),
        None => {
            runtime(tokio::runtime::Builder::new_multi_thread())?.block_on(judge_all(&arguments))
        }
    }
}

fn runtime(mut builder: tokio::runtime::Builder) -> std::io::Result<tokio::runtime::Runtime> {
    builder.enable_all().build()
}

async fn judge_all(arguments: &Arguments) -> anyhow::Result<()> {
    let lasts = Duration::from_secs_f64(60.0 * arguments.minutes);
    let faults = Faults::begin(Rng::with_seed(arguments.seed)).await?;
    let outcome = faults.run(lasts).await?;
    let words: Vec<String> = env::args().skip(1).collect();
    let command = format!("cargo xtask soak {}", words.join(" "));
    report::report(&outcome, command.trim()).write(&arguments.destination)
}
