//! A ZooKeeper for the examples to play with.
//!
//! Run one with `cargo run --example exclusive_lock`: it runs on a server in its own process, in
//! memory. With `-- --server` behind that, it starts Apache's server.

use std::time::Duration;

use anyhow::bail;
use zookeeper_recipes_core::ensemble::{CreateMode, Permission, ServerSession};
use zookeeper_recipes_core::{Acl, AuthId, NodePath, Refusal, Session};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};
use zookeeper_recipes_testkit::{CONNECT_VARIABLE, ServerOptions, TestEnsemble};

pub mod postgres;
mod process;
#[cfg(doctest)]
mod readmes;

pub use self::process::{Part, Process, ask};

/// The tick of a server that is started here.
const TICK: Duration = Duration::from_millis(500);

/// ZooKeeper's usual tick, which a server named by `ZOOKEEPER_CONNECT` is assumed to have.
const DEFAULT_TICK: Duration = Duration::from_secs(2);

/// A directory of its own on a ZooKeeper server.
///
/// `ZOOKEEPER_CONNECT` names the server. If it names none, an embedded server serves in this
/// process, in memory, and ends with the playground. If the program was called with `--server`, it
/// is Apache's server.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_examples::Playground;
///
/// let playground = Playground::open().await?;
/// let session = playground.connect().await?;
/// session.close().await;
/// playground.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Playground {
    ground: Ground,
    directory: NodePath,
    session_timeout: Duration,
}

#[derive(Debug)]
enum Ground {
    Embedded(EmbeddedServer),
    /// Apache's server, or the ensemble that the environment names.
    Server(Box<TestEnsemble>),
}

impl Ground {
    async fn of_the_arguments() -> anyhow::Result<Ground> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let is_named = std::env::var_os(CONNECT_VARIABLE).is_some_and(|named| !named.is_empty());
        match &arguments[..] {
            [] if !is_named => {
                let defaults = EmbeddedOptions::default();
                let simulation = SimulationOptions {
                    tick: TICK,
                    ..defaults.simulation
                };
                let options = EmbeddedOptions {
                    simulation,
                    ..defaults
                };
                Ok(Ground::Embedded(EmbeddedServer::start_with(options)?))
            }
            [] => server().await,
            [server_is_asked_for] if server_is_asked_for == "--server" => server().await,
            _ => bail!("{arguments:?}: only --server is known"),
        }
    }

    fn connect_string(&self) -> String {
        match self {
            Ground::Embedded(server) => server.connect_string(),
            Ground::Server(ensemble) => ensemble.connect_string().to_owned(),
        }
    }
}

async fn server() -> anyhow::Result<Ground> {
    let options = ServerOptions::new().tick_time(TICK);
    let ensemble = TestEnsemble::from_environment_or_start(options).await?;
    Ok(Ground::Server(Box::new(ensemble)))
}

impl Playground {
    /// Starts a server if there is none to connect to, and creates the directory.
    ///
    /// # Errors
    ///
    /// When no server can be started, or none answers; or when the program was called with
    /// arguments that it does not know.
    pub async fn open() -> anyhow::Result<Playground> {
        Playground::open_with(Duration::from_secs(10)).await
    }

    /// As [`open`](Self::open), with this session timeout.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub async fn open_with(session_timeout: Duration) -> anyhow::Result<Playground> {
        let playground = Playground {
            ground: Ground::of_the_arguments().await?,
            directory: NodePath::new(&TestEnsemble::directory("recipes-example"))?,
            session_timeout,
        };
        let session = Session::connect(&playground.ground.connect_string()).await?;
        let server = session.server(&playground.directory).await?;
        let anyone = [Acl::new(Permission::ALL, AuthId::anyone())];
        let directory = playground.directory.as_str();
        server
            .create(directory, b"", CreateMode::Persistent, &anyone)
            .await?;
        drop(server);
        session.close().await;
        Ok(playground)
    }

    /// The connect string, with the directory as its chroot.
    fn place(&self) -> String {
        format!("{}{}", self.ground.connect_string(), self.directory)
    }

    /// Opens a session: [`Session::connect`] with the connect string of the ensemble.
    ///
    /// # Errors
    ///
    /// Those of [`Session::connect`].
    pub async fn connect(&self) -> Result<Session, zookeeper_recipes_core::Error> {
        process::connect(&self.place(), self.session_timeout).await
    }

    /// The server's tick: a session can outlast its timeout by so much.
    pub fn tick(&self) -> Duration {
        match &self.ground {
            Ground::Server(ensemble) if ensemble.server().is_none() => DEFAULT_TICK,
            Ground::Server(_) | Ground::Embedded(_) => TICK,
        }
    }

    /// Starts a process of this name that plays a part: this program once more.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(&self, name: &str) -> anyhow::Result<Process> {
        Process::start(name, &self.place(), self.session_timeout)
    }

    /// Removes the directory and all that is in it.
    ///
    /// # Errors
    ///
    /// When the server does not answer, or refuses.
    pub async fn close(self) -> anyhow::Result<()> {
        let session = Session::connect(&self.ground.connect_string()).await?;
        let server = session.server(&self.directory).await?;
        remove(&*server, self.directory.as_str()).await?;
        drop(server);
        session.close().await;
        Ok(())
    }
}

async fn remove(server: &dyn ServerSession, path: &str) -> anyhow::Result<()> {
    // A parent is deleted after its children, so they are collected parents first.
    let mut paths = vec![path.to_owned()];
    let mut next = 0;
    while let Some(parent) = paths.get(next).cloned() {
        match server.list(&parent).await {
            Ok(children) => paths.extend(children.iter().map(|name| format!("{parent}/{name}"))),
            Err(error) if error.is(Refusal::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
        next += 1;
    }
    for path in paths.iter().rev() {
        match server.delete(path).await {
            Ok(()) => {}
            // Ephemeral znodes have gone by themselves, and an empty container may have.
            Err(error) if error.is(Refusal::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
