//! `zkr dev-server`: a ZooKeeper for development and tests, in memory only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};

use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;

/// The tick, unless --tick sets another. The shortest session lasts two.
const TICK: Duration = Duration::from_millis(500);

/// Serve ZooKeeper for development and tests, in memory only.
///
/// The server starts in milliseconds, needs no Java, and serves clients in any language. --tick
/// sets its tick. The shortest session timeout is two ticks. Ctrl-C ends it and deletes all data.
#[derive(Debug, Args)]
pub(crate) struct DevServer {
    /// The port on 127.0.0.1. The other members have the ports after it. 0 chooses free ones.
    #[arg(long, default_value_t = 2181)]
    port: u16,

    /// How many members the ensemble has.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=7))]
    members: u16,

    /// The port on 127.0.0.1 that takes faults over HTTP. GET / lists them.
    #[arg(long)]
    admin_port: Option<u16>,

    /// The znodes to begin with: a JSON object such as {"/app/config": "v1", "/app/empty": null}.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

impl DevServer {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let server = self.start(connection.tick.unwrap_or(TICK))?;
        let mut text = format!("ZooKeeper serves at {}\n", server.connect_string());
        if let Some(admin) = server.admin_address() {
            text += &format!("http://{admin} takes faults: curl http://{admin}/ lists them\n");
        }
        text += "It is in memory only: all data is gone when it ends. Ctrl-C ends it.\n";
        print(&text)?;
        let waited = tokio::signal::ctrl_c().await;
        waited.map_err(|error| Failure::internal("cannot wait for Ctrl-C", error))?;
        Ok(Exit::Done)
    }

    fn start(&self, tick: Duration) -> Result<EmbeddedServer, Failure> {
        let znodes = match &self.data {
            Some(file) => znodes(file)?,
            None => Vec::new(),
        };
        let defaults = EmbeddedOptions::default();
        let options = EmbeddedOptions {
            members: usize::from(self.members),
            port: self.port,
            admin_port: self.admin_port,
            znodes,
            simulation: SimulationOptions {
                tick,
                ..defaults.simulation
            },
            ..defaults
        };
        let started = EmbeddedServer::start_with(options);
        started.map_err(|error| Failure::usage(format!("the server does not start: {error}")))
    }
}

/// The znodes in a file, with their data.
fn znodes(file: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let text = fs::read_to_string(file);
    let text = text.map_err(|error| Failure::usage(format!("cannot read {file:?}: {error}")))?;
    let object: serde_json::Map<_, _> = serde_json::from_str(&text).map_err(|error| {
        let example = r#"such as {"/a": "data"}"#;
        Failure::usage(format!(
            "{file:?} is no JSON object of paths and data, {example}: {error}"
        ))
    })?;
    let znode = |(path, data): (String, serde_json::Value)| match data {
        serde_json::Value::String(data) => Ok((path, data.into_bytes())),
        serde_json::Value::Null => Ok((path, Vec::new())),
        _ => Err(Failure::usage(format!(
            "{file:?}: the data of {path} is no text"
        ))),
    };
    // A parent comes before its children.
    let sorted: BTreeMap<_, _> = object.into_iter().collect();
    sorted.into_iter().map(znode).collect()
}
