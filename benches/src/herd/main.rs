//! The cost of a release, by each way to wait, as the number of contenders grows.
//!
//! `cargo xtask bench herd` installs what it needs and runs it.

mod findings;
mod measure;

use std::time::Duration;

use clap::Parser;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::open_files::allow_open_files;
use zookeeper_recipes_benches::report::{Destination, Machine};
use zookeeper_recipes_benches::way::Way;

use crate::findings::report;
use crate::measure::{Limits, Sweep};

/// How many sessions there are at most.
const SESSIONS: usize = 1_000;

/// The cost of a release, by each waiting strategy, as the number of contenders grows.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench herd")]
struct Arguments {
    /// The numbers of contenders, separated by commas. Each contender has a session of its own. More
    /// than 1,000 share 1,000 sessions, and only the strategies that wake one waiter are measured.
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [2, 10, 50, 100, 500, 1_000, 10_000],
        value_parser = clap::value_parser!(u16).range(2..=10_000),
    )]
    contenders: Vec<u16>,

    /// The most handoffs to time for each figure.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    handoffs: u32,

    /// How long to time handoffs for each figure, in seconds, if there are a few by then.
    #[arg(long, default_value_t = 4)]
    seconds: u64,

    /// A smoke test: 2 and 5 contenders, and 20 in 5 sessions; few releases.
    #[arg(long, conflicts_with_all = ["contenders", "handoffs", "seconds"])]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

impl Arguments {
    fn sizes(&self) -> Vec<usize> {
        match self.quick {
            true => vec![2, 5, 20],
            false => self.contenders.iter().copied().map(usize::from).collect(),
        }
    }

    fn counting(&self) -> Limits {
        Limits {
            least: if self.quick { 10 } else { 3 },
            most: if self.quick { 10 } else { 100 },
            time: Duration::from_secs(2),
        }
    }

    fn timing(&self) -> Limits {
        let handoffs = if self.quick {
            10
        } else {
            self.handoffs as usize
        };
        Limits {
            least: handoffs.min(if self.quick { 10 } else { 5 }),
            most: handoffs,
            time: Duration::from_secs(self.seconds),
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let sizes = arguments.sizes();
    let most_sessions = if arguments.quick { 5 } else { SESSIONS };
    // Each session has a connection, and a counted connection passes both ends of the proxy.
    let sessions = sizes.iter().copied().max().unwrap_or(0).min(most_sessions);
    allow_open_files(3 * sessions as u64 + 200)?;
    let sweep = Sweep {
        sizes,
        ways: Way::ALL.to_vec(),
        most_sessions,
        warms_up: !arguments.quick,
        timing: arguments.timing(),
        counting: arguments.counting(),
    };
    let testbed = Testbed::start();
    let (machine, rows) = testbed.runtime().block_on(async {
        let machine = Machine::with(testbed.ensemble()).await?;
        anyhow::Ok((machine, sweep.run(&testbed).await?))
    })?;
    report(&rows, machine)?.write(&arguments.destination)
}
