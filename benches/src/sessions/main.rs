//! Many sessions in one ensemble: handoffs at first, and then the death of a member. Ours, and
//! those of Apache Curator.
//!
//! `cargo xtask bench sessions` installs what it needs and runs it.

mod curator;
mod death;
mod fleet;
mod handoffs;
mod library;
mod ours;
mod party;
mod plan;
mod report;
mod turns;

use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use zookeeper_recipes_benches::as_in_production;
use zookeeper_recipes_benches::open_files::allow_open_files;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine, target};
use zookeeper_recipes_interop::{Program, ProgramError};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::curator::JAVA_OPTIONS;
use crate::library::Library;
use crate::plan::Plan;
use crate::report::{Measured, report};

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

    /// How long to count handoffs, in seconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// A smoke test: 40 sessions with 2 locks each, 0.3 seconds.
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
                time: Duration::from_millis(300),
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
    let libraries = libraries()?;
    let mut progress = Progress::of(2 * libraries.len());
    let (mut measured, mut machine) = (Vec::new(), None);
    for library in libraries {
        let name = library.name();
        let mut ensemble = Ensemble::start(SERVERS, as_in_production(ServerOptions::new())).await?;
        if machine.is_none() {
            machine = Some(Machine::with(&ensemble).await?);
        }
        progress.step(format!("{name}: handoffs"));
        let handoffs = handoffs::measure(&library, &ensemble, plan).await?;
        progress.step(format!("{name}: the death of a member"));
        let death = death::measure(&library, &mut ensemble, plan).await?;
        measured.push(Measured {
            name,
            handoffs,
            death,
        });
    }
    progress.finish();
    let machine = machine.context("a library")?;
    report(plan, &measured, machine)?.write(&arguments.destination)
}

/// Ours, and Curator if the machine has it.
fn libraries() -> anyhow::Result<Vec<Library>> {
    let mut libraries = vec![Library::Ours];
    match Program::curator(&target(), &JAVA_OPTIONS) {
        Ok(program) => libraries.push(Library::Curator(program)),
        Err(missing @ ProgramError::Missing { .. }) => eprintln!("{missing}"),
        Err(broken) => return Err(broken.into()),
    }
    Ok(libraries)
}
