//! A ZooKeeper for development and tests: no Java, in memory only.
//!
//! ```text
//! cargo run --bin dev_server -- --port 2181 --members 3 --data znodes.json
//! ```
//!
//! The file has an object in JSON: `{ "/app/config": "v1", "/app/empty": null }`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use zookeeper_recipes_simulation::{EmbeddedEnsemble, EmbeddedOptions, SimulationOptions};

/// Serve ZooKeeper for development and tests, in memory only.
#[derive(Debug, Parser)]
struct Arguments {
    /// The port on 127.0.0.1. The other members have the ports after it. 0 chooses free ones.
    #[arg(long, default_value_t = 2181)]
    port: u16,

    /// How many members the ensemble has.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=7))]
    members: u16,

    /// The tick in milliseconds. The shortest session lasts two.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    tick: u64,

    /// The znodes to begin with: a JSON object of paths and data.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let ensemble = start(arguments)?;
    println!("ZooKeeper serves at {}", ensemble.connect_string());
    println!("It is in memory only: all data is gone when it ends. Ctrl-C ends it.");
    tokio::signal::ctrl_c()
        .await
        .context("cannot wait for Ctrl-C")
}

fn start(arguments: &Arguments) -> anyhow::Result<EmbeddedEnsemble> {
    let znodes = match &arguments.data {
        Some(file) => znodes(file)?,
        None => Vec::new(),
    };
    let defaults = EmbeddedOptions::default();
    let options = EmbeddedOptions {
        port: arguments.port,
        znodes,
        simulation: SimulationOptions {
            tick: Duration::from_millis(arguments.tick),
            ..defaults.simulation
        },
        ..defaults
    };
    let started = EmbeddedEnsemble::start_with(options, usize::from(arguments.members));
    started.context("the server does not start")
}

/// The znodes in a file, with their data.
fn znodes(file: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {file:?}"))?;
    let znodes: BTreeMap<String, Option<String>> =
        serde_json::from_str(&text).with_context(|| {
            format!("{file:?} is no JSON object of paths and strings, such as {{\"/a\": \"data\"}}")
        })?;
    let with_bytes = |(path, data): (String, Option<String>)| {
        let data = data.unwrap_or_default();
        (path, data.into_bytes())
    };
    Ok(znodes.into_iter().map(with_bytes).collect())
}
