//! `zkr dev-server`: a ZooKeeper for development and tests, in memory only.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use zookeeper_recipes_core::NodePath;
use zookeeper_recipes_simulation::{
    EmbeddedOptions, EmbeddedServer, SimulationOptions, StartError,
};

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;

/// The tick, unless --tick sets another. The shortest session lasts two.
const TICK: Duration = Duration::from_millis(500);

/// Serve ZooKeeper for development and tests, in memory only.
///
/// The server starts in milliseconds, needs no Java, and serves clients in any language. --tick
/// sets its tick. The shortest session timeout is two ticks. Ctrl-C stops it and deletes all data.
/// The other connection options are refused here.
#[derive(Debug, Args)]
pub(crate) struct DevServer {
    /// The port on 127.0.0.1. Other members use the ports after it. 0 picks free ones.
    #[arg(long, default_value_t = 2181)]
    port: u16,

    /// How many members the ensemble has.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=7))]
    members: u16,

    /// The port on 127.0.0.1 for fault injection over HTTP. GET / lists the requests.
    #[arg(long)]
    admin_port: Option<u16>,

    /// The initial znodes: a JSON object such as {"/app/config": "v1", "/app/empty": null}.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Allow znodes with a time to live, as `zookeeper.extendedTypesEnabled` does.
    #[arg(long)]
    extended_types: bool,

    /// How often to delete empty containers, and znodes whose time to live has passed.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    container_check_interval: Duration,

    /// The superuser, which no ACL restricts: `super:` and the digest of its credentials.
    ///
    /// The digest is the base64 of the SHA-1 of `super:password`, as in Apache's
    /// `zookeeper.DigestAuthenticationProvider.superDigest`.
    #[arg(long, value_name = "USER:DIGEST")]
    super_digest: Option<String>,

    /// The largest request in bytes. A larger one closes the connection.
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_575)]
    jute_maxbuffer: u32,
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
        if tick.is_zero() {
            return Err(Failure::usage("--tick must not be zero"));
        }
        if self.container_check_interval.is_zero() {
            let problem = "--container-check-interval must not be zero";
            return Err(Failure::usage(problem));
        }
        if let Some(digest) = self.super_digest.as_deref().filter(|it| !is_digest(it)) {
            let problem = "is not a user, a colon and the base64 of a SHA-1";
            return Err(Failure::usage(format!(
                "--super-digest {digest:?} {problem}"
            )));
        }
        self.check_ports()?;
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
                extended_types: self.extended_types,
                container_interval: self.container_check_interval,
                super_digest: self.super_digest.clone(),
                largest_request: usize::try_from(self.jute_maxbuffer).unwrap_or(usize::MAX),
                ..defaults.simulation
            },
            ..defaults
        };
        let started = EmbeddedServer::start_with(options);
        started.map_err(|error| failure(&error))
    }

    fn check_ports(&self) -> Result<(), Failure> {
        let Some(last) = self.port.checked_add(self.members - 1) else {
            let problem = format!("--members {} has ports above 65535", self.members);
            return Err(Failure::usage(format!("--port {}: {problem}", self.port)));
        };
        match self.admin_port {
            Some(admin) if self.port > 0 && (self.port..=last).contains(&admin) => {
                let problem = format!("--admin-port {admin} is the port of a member");
                Err(Failure::usage(problem))
            }
            _ => Ok(()),
        }
    }
}

/// True if this is a user and the base64 of 20 bytes.
fn is_digest(text: &str) -> bool {
    let is_base64 = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '/' | '=');
    text.split_once(':').is_some_and(|(user, hash)| {
        !user.is_empty() && hash.len() == 28 && hash.ends_with('=') && hash.chars().all(is_base64)
    })
}

fn failure(error: &StartError) -> Failure {
    let exit = match error {
        StartError::PortInUse { .. } => Exit::PortInUse,
        StartError::Listen { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Exit::NoPermission
        }
        _ => Exit::Usage,
    };
    let cause = std::error::Error::source(error);
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    Failure::new(exit, format!("the server does not start: {error}{cause}"))
}

/// The znodes in a file, with their data.
fn znodes(file: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let text = fs::read_to_string(file);
    let text = text.map_err(|error| Failure::usage(format!("cannot read {file:?}: {error}")))?;
    // A parent comes before its children.
    let znodes: BTreeMap<String, Option<String>> =
        serde_json::from_str(&text).map_err(|error| {
            let example = r#"such as {"/a": "data"}"#;
            Failure::usage(format!(
                "{file:?} is not a JSON object of paths and data, {example}: {error}"
            ))
        })?;
    for path in znodes.keys() {
        NodePath::new(path).map_err(|error| Failure::usage(format!("{file:?}: {error}")))?;
    }
    let znodes = znodes.into_iter();
    Ok(znodes
        .map(|(path, data)| (path, data.unwrap_or_default().into_bytes()))
        .collect())
}
