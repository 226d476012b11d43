//! The time of each operation at the embedded server, compared to Apache's server.
//!
//! `cargo xtask bench embedded` installs what it needs and runs it.

mod findings;
mod operation;
mod throughput;

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use hdrhistogram::Histogram;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::open_files::allow_open_files;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};

use crate::findings::{Findings, Rates, Row};
use crate::operation::{OPERATIONS, Operation, Place};
use crate::throughput::{Crowd, LOADS, Load};

/// The tick of both servers.
const TICK: Duration = Duration::from_secs(2);

/// How often an operation is done at one server before it is the other's turn.
const IN_A_ROW: usize = 5;

/// The time of each operation at the embedded server, compared to Apache's server.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench embedded")]
struct Arguments {
    /// For how many seconds each figure is measured.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// How many clients ask at once.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=5_000))]
    clients: u16,

    /// Only the operations whose names contain this.
    #[arg(long, value_name = "PART")]
    only: Option<String>,

    /// Only to see that it works: few times, 5 clients.
    #[arg(long, conflicts_with_all = ["seconds", "clients"])]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

impl Arguments {
    fn time(&self) -> Duration {
        match self.quick {
            true => Duration::from_millis(10),
            false => Duration::from_secs(self.seconds),
        }
    }

    fn operations(&self) -> Vec<Operation> {
        let part = self.only.as_deref().unwrap_or_default();
        let all = OPERATIONS.into_iter();
        all.filter(|it| it.to_string().contains(part)).collect()
    }

    fn clients(&self) -> usize {
        match self.quick {
            true => 5,
            false => self.clients.into(),
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    // Each client has a connection to each server, and the embedded server has its ends here.
    allow_open_files(3 * arguments.clients() as u64 + 200)?;
    let testbed = Testbed::start();
    let embedded = start_embedded()?;
    let addresses = [testbed.server().connect_string(), embedded.connect_string()];
    let (machine, findings) = testbed.runtime().block_on(async {
        let machine = Machine::with(testbed.server()).await?;
        anyhow::Ok((machine, measure(&addresses, &arguments).await?))
    })?;
    findings.report(machine)?.write(&arguments.destination)
}

fn start_embedded() -> anyhow::Result<EmbeddedServer> {
    let defaults = EmbeddedOptions::default();
    let options = EmbeddedOptions {
        simulation: SimulationOptions {
            tick: TICK,
            ..defaults.simulation
        },
        ..defaults
    };
    EmbeddedServer::start_with(options).context("the embedded server does not start")
}

async fn measure(addresses: &[String; 2], arguments: &Arguments) -> anyhow::Result<Findings> {
    let operations = arguments.operations();
    let mut progress = Progress::of(1 + operations.len() + LOADS.len());
    progress.step("warming up".to_owned());
    let [apache, embedded] = addresses;
    let places = [
        Place::prepare(apache).await?,
        Place::prepare(embedded).await?,
    ];
    if !arguments.quick {
        for &operation in &operations {
            time(&places, operation, Duration::from_secs(2)).await?;
        }
    }
    let mut rows = Vec::new();
    for operation in operations {
        progress.step(operation.to_string());
        rows.push(time(&places, operation, arguments.time()).await?);
    }
    let mut rates = Vec::new();
    let clients = arguments.clients();
    let crowds = [
        Crowd::connect(apache, clients).await?,
        Crowd::connect(embedded, clients).await?,
    ];
    for load in LOADS {
        progress.step(load.name().to_owned());
        rates.push(rate(&crowds, load, clients, arguments.time()).await?);
    }
    progress.finish();
    Ok(Findings { rows, rates })
}

/// Times an operation for so long, at both servers in turns.
async fn time(places: &[Place; 2], operation: Operation, time: Duration) -> anyhow::Result<Row> {
    let empty = || Histogram::new(3).context("three digits are few enough");
    let mut times = [empty()?, empty()?];
    let began = Instant::now();
    while times[0].is_empty() || began.elapsed() < time {
        for (place, times) in places.iter().zip(&mut times) {
            for _ in 0..IN_A_ROW {
                let took = place.time(operation).await?;
                times.record(took.as_nanos() as u64)?;
            }
        }
    }
    Ok(Row { operation, times })
}

/// Counts what many clients get done, at both servers in turns.
async fn rate(
    crowds: &[Crowd; 2],
    load: Load,
    clients: usize,
    time: Duration,
) -> anyhow::Result<Rates> {
    let mut rates = [Vec::new(), Vec::new()];
    // The first turn warms up.
    for turn in 0..10 {
        for (crowd, rates) in crowds.iter().zip(&mut rates) {
            let rate = crowd.rate(load, time / 4).await?;
            if turn > 0 {
                rates.push(rate);
            }
        }
    }
    Ok(Rates {
        load,
        clients,
        rates,
    })
}
