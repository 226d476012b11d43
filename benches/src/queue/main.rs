//! The cost of entering the queue of a lock and of a handoff, as the queue grows.
//!
//! `cargo xtask bench queue` installs what it needs and runs it.

mod findings;

use std::time::Duration;

use clap::Parser;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::measure::{Limits, Sweep};
use zookeeper_recipes_benches::report::{Destination, Machine};
use zookeeper_recipes_benches::way::{Subject, Wakes, Way};

use crate::findings::Findings;

/// How many sessions the contenders share.
const SESSIONS: usize = 100;

/// The cost of entering the queue of a lock and of a handoff, as the queue grows.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench queue")]
struct Arguments {
    /// How many contenders are in the queue: several numbers, with commas between.
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [10, 100, 1_000, 10_000],
        value_parser = clap::value_parser!(u16).range(2..=10_000),
    )]
    contenders: Vec<u16>,

    /// Only to see that it works: 5 and 20 contenders, few times.
    #[arg(long, conflicts_with = "contenders")]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (sizes, counting, timing) = match arguments.quick {
        true => (vec![5, 20], of_times(10), of_times(10)),
        false => (arguments.contenders, of_times(50), of_times(1_000)),
    };
    let ways = Way::ALL.into_iter();
    let ways = ways.filter(|way| way.wakes == Wakes::WhomItConcerns);
    let sweep = Sweep {
        sizes: sizes.into_iter().map(usize::from).collect(),
        pairs: ways.map(|way| (Subject::Lock, way)).collect(),
        most_sessions: SESSIONS,
        warms_up: true,
        timing,
        counting,
    };
    let testbed = Testbed::start();
    let (machine, rows) = testbed.runtime().block_on(async {
        let machine = Machine::with(testbed.server()).await?;
        anyhow::Ok((machine, sweep.run(&testbed).await?))
    })?;
    let findings = Findings {
        rows,
        ways: sweep.pairs.into_iter().map(|(_, way)| way).collect(),
        sessions: SESSIONS,
    };
    findings.report(machine)?.write(&arguments.destination)
}

/// At most this number of times, and fewer if that takes too long.
fn of_times(times: usize) -> Limits {
    Limits {
        least: times.min(20),
        most: times,
        time: Duration::from_secs(5),
    }
}
