//! The overview of many queues: what a look costs, what keeps it up to date, and what a contended
//! lock loses beside it.
//!
//! `cargo xtask bench overview` installs what it needs and runs it.

#[path = "../assignment/allocations.rs"]
mod allocations;
mod effect;
mod load;
mod looks;
mod report;
mod tree;

use std::time::Duration;

use clap::Parser;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::open_files::allow_open_files;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine};

use crate::report::{Found, report};
use crate::tree::{SESSIONS, Tree};

/// The heap of the server. A million znodes take more than half of it.
const HEAP: u32 = 3 * 1024;

/// The overview of up to 100,000 queues, each with a holder and eight waiters.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench overview")]
struct Arguments {
    /// How many queues: several numbers, with commas between.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000],
          value_parser = clap::value_parser!(u32).range(100..=100_000))]
    queues: Vec<u32>,

    /// How many handoffs a second happen while an overview is kept up to date.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    handoffs: u32,

    /// For how many seconds an overview is kept up to date, for each number of queues.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..))]
    seconds: u64,

    /// How often the throughput of the contended lock is measured with each viewer, for four seconds.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Only to see that it works: 100 queues.
    #[arg(long, conflicts_with_all = ["queues", "handoffs", "seconds", "rounds"])]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

/// What is measured.
struct Plan {
    sizes: Vec<usize>,
    handoffs: u32,
    time: Duration,
    rounds: u32,
    round: Duration,
}

impl Arguments {
    fn plan(&self) -> Plan {
        if self.quick {
            return Plan {
                sizes: vec![100],
                handoffs: 100,
                time: Duration::from_secs(2),
                rounds: 1,
                round: Duration::from_millis(500),
            };
        }
        let mut sizes: Vec<usize> = self.queues.iter().map(|it| *it as usize).collect();
        sizes.sort_unstable();
        Plan {
            sizes,
            handoffs: self.handoffs,
            time: Duration::from_secs(self.seconds),
            rounds: self.rounds,
            round: Duration::from_secs(4),
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let plan = arguments.plan();
    allow_open_files(SESSIONS as u64 + 200)?;
    let testbed = Testbed::with_heap(if arguments.quick { 512 } else { HEAP });
    let found = testbed.runtime().block_on(measure(&testbed, &plan))?;
    let machine = testbed
        .runtime()
        .block_on(Machine::with(testbed.ensemble()))?;
    report(&found, machine)?.write(&arguments.destination)
}

/// Measures each size, from the smallest on. The contended lock is beside the middle one.
async fn measure(testbed: &Testbed, plan: &Plan) -> anyhow::Result<Found> {
    let mut progress = Progress::of(3 * plan.sizes.len() + 1);
    let mut tree = Tree::new(testbed.server()).await?;
    let mut found = Found {
        handoffs: plan.handoffs,
        looks: Vec::new(),
        follows: Vec::new(),
        effects: Vec::new(),
        beside: plan.sizes[plan.sizes.len() / 2],
    };
    for size in &plan.sizes {
        progress.step(format!("{size} queues: made"));
        tree.grow(*size).await?;
        progress.step(format!("{size} queues: a look"));
        found.looks.push(looks::look(testbed, &tree).await?);
        progress.step(format!("{size} queues: kept up to date"));
        let follow = looks::follow(testbed, &tree, plan.handoffs, plan.time).await?;
        found.follows.push(follow);
        if *size == found.beside {
            progress.step("a contended lock".to_owned());
            found.effects = effect::measure(testbed, plan.rounds, plan.round).await?;
        }
    }
    progress.finish();
    Ok(found)
}
