//! The assignment of partitions: a start of all workers, the death of one, the arrival of another
//! one, and a rolling restart. Beside it kazoo's `SetPartitioner`.
//!
//! `cargo xtask bench assignment` installs what it needs and runs it.
//!
//! Each worker of ours has a session, a thread and a runtime of its own. Each of kazoo's is a
//! process.

mod allocations;
mod kazoo;
mod memory;
mod ownership;
mod phases;
mod planner;
mod report;
mod restart;
mod size;
mod worker;

use std::time::Duration;

use clap::Parser;
use zookeeper_recipes_benches::as_in_production;
use zookeeper_recipes_benches::open_files::allow_open_files;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::report::{Found, report};
use crate::size::{Size, Times};

/// The size at which kazoo works as well.
const BESIDE_KAZOO: Size = Size {
    partitions: 100,
    workers: 10,
};

/// The partitions whose plans are timed.
const PLANNED: usize = 100_000;

/// The longest grace of a rolling restart. No worker is away for so long.
const GRACE: Duration = Duration::from_secs(60);

/// Up to 10,000 partitions over up to 100 workers.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench assignment")]
struct Arguments {
    /// The numbers of partitions, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000],
          value_parser = clap::value_parser!(u32).range(10..=100_000))]
    partitions: Vec<u32>,

    /// The numbers of workers, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100],
          value_parser = clap::value_parser!(u16).range(2..=1_000))]
    workers: Vec<u16>,

    /// The session timeout, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(4..=40))]
    session_timeout: u64,

    /// Only compute plans, without a server.
    #[arg(long, conflicts_with_all = ["partitions", "workers", "session_timeout", "quick"])]
    plans: bool,

    /// Only the start, the death and the arrival, of ours.
    #[arg(long, conflicts_with_all = ["plans", "quick"])]
    phases: bool,

    /// A smoke test: 40 partitions, 4 workers.
    #[arg(long, conflicts_with_all = ["partitions", "workers", "session_timeout"])]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

/// What is measured.
struct Plan {
    sizes: Vec<Size>,
    beside_kazoo: Size,
    restart: Size,
    /// The partitions of the assignment whose memory is measured.
    memory: usize,
    times: Times,
}

impl Arguments {
    fn plan(&self) -> Plan {
        let quick = Size {
            partitions: 40,
            workers: 4,
        };
        if self.quick {
            return Plan {
                sizes: Vec::new(),
                beside_kazoo: quick,
                restart: quick,
                memory: quick.partitions,
                times: Times {
                    session_timeout: Duration::from_secs(4),
                    rest: Duration::from_millis(500),
                },
            };
        }
        let size = |partitions, workers| Size {
            partitions,
            workers,
        };
        let sizes = self.partitions.iter().flat_map(|partitions| {
            let workers = self.workers.iter();
            workers.map(|workers| size(*partitions as usize, usize::from(*workers)))
        });
        Plan {
            sizes: sizes.collect(),
            beside_kazoo: BESIDE_KAZOO,
            restart: size(1_000, 10),
            memory: 10_000,
            times: Times {
                session_timeout: Duration::from_secs(self.session_timeout),
                rest: Duration::from_secs(self.session_timeout),
            },
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.plans {
        println!(
            "{}",
            planner::table(&planner::measure(PLANNED)).to_markdown()
        );
        return Ok(());
    }
    let plan = arguments.plan();
    let most = plan.sizes.iter().map(|size| size.workers).max();
    // A session has a connection, and the proxy both ends of another one.
    allow_open_files(5 * most.unwrap_or(10) as u64 + 500)?;
    let ensemble = Ensemble::start(1, as_in_production(ServerOptions::new())).await?;
    let server = &ensemble.members()[0];
    if arguments.phases {
        for size in &plan.sizes {
            let measured = phases::measure(server, *size, plan.times).await?;
            println!("{}", report::phases(&measured).to_markdown());
        }
        return Ok(());
    }
    let machine = Machine::with(&ensemble).await?;
    let mut progress = Progress::of(plan.sizes.len() + 5);
    let mut measured = Vec::new();
    for size in [plan.beside_kazoo].iter().chain(&plan.sizes) {
        progress.step(format!("ours, {size}"));
        measured.push(phases::measure(server, *size, plan.times).await?);
    }
    progress.step(format!("kazoo, {}", plan.beside_kazoo));
    let kazoo = kazoo::measure(server, plan.beside_kazoo, plan.times).await?;
    let mut restarts = Vec::new();
    for grace in [Duration::ZERO, GRACE] {
        progress.step(format!("a rolling restart, a grace of {grace:?}"));
        restarts.push(restart::measure(server, plan.restart, grace, plan.times).await?);
    }
    progress.step(format!("the memory of {} partitions", plan.memory));
    let memory = memory::measure(server, plan.memory, plan.times).await?;
    progress.finish();
    let found = Found {
        plans: planner::measure(if arguments.quick { 40 } else { PLANNED }),
        measured,
        memory,
        kazoo,
        restarts,
        times: plan.times,
    };
    report(&found, machine).write(&arguments.destination)
}
