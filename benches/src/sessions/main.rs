//! Many sessions in one ensemble: handoffs at first, and then the death of a member.
//!
//! `cargo xtask bench sessions` installs what it needs and runs it.

mod death;
mod fleet;
mod plan;
mod report;
mod turns;

use std::time::Duration;

use clap::Parser;
use zookeeper_recipes_benches::open_files::allow_open_files;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine};
use zookeeper_recipes_testkit::{Compiler, Ensemble, ServerOptions};

use crate::plan::Plan;
use crate::report::report;

/// The number of servers.
const SERVERS: usize = 3;

/// Many sessions in one ensemble of three servers, and the death of a member.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench sessions")]
struct Arguments {
    /// How many sessions there are.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(20..=5_000))]
    sessions: u16,

    /// How many locks each session holds all the time.
    #[arg(long, default_value_t = 50)]
    locks: u16,

    /// For how many seconds handoffs are counted.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// Only to see that it works: 40 sessions with 2 locks each, one second.
    #[arg(long, conflicts_with_all = ["sessions", "locks", "seconds"])]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

impl Arguments {
    fn plan(&self) -> Plan {
        match self.quick {
            true => Plan {
                sessions: 40,
                locks: 2,
                time: Duration::from_secs(1),
            },
            false => Plan {
                sessions: usize::from(self.sessions),
                locks: usize::from(self.locks),
                time: Duration::from_secs(self.seconds),
            },
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let plan = arguments.plan();
    // A session has a connection, and the proxies have both ends of another one.
    allow_open_files(5 * plan.sessions as u64 + 500)?;
    let options = ServerOptions::new()
        .compiler(Compiler::Full)
        .tick_time(Duration::from_secs(2))
        .heap_mebibytes(512);
    let mut ensemble = Ensemble::start(SERVERS, options).await?;
    let machine = Machine::with(&ensemble.members()[0]).await?;
    let mut progress = Progress::of(2);
    progress.step("handoffs".to_owned());
    let handoffs = turns::measure(&ensemble, plan).await?;
    progress.step("the death of a member".to_owned());
    let death = death::measure(&mut ensemble, plan).await?;
    progress.finish();
    report(plan, &handoffs, &death, machine)?.write(&arguments.destination)
}
