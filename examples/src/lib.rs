//! A ZooKeeper for the examples to play with.
//!
//! Run one with `cargo run --example exclusive_lock`. With `-- --simulated` behind that, it runs on
//! an ensemble in its own memory, and needs no server.

use std::time::Duration;

use anyhow::bail;
use zookeeper_recipes_core::ensemble::{CreateMode, Permission, ServerSession};
use zookeeper_recipes_core::{Acl, AuthId, NodePath, Refusal, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_testkit::{ServerOptions, TestEnsemble};

mod place;
mod process;
#[cfg(doctest)]
mod readmes;

use self::place::Place;
pub use self::process::{Part, Process};

/// The tick of a server that is started here.
const TICK: Duration = Duration::from_millis(500);

/// ZooKeeper's usual tick, which a server named by `ZOOKEEPER_CONNECT` is assumed to have.
const USUAL_TICK: Duration = Duration::from_secs(2);

/// A directory of its own on a ZooKeeper server.
///
/// `ZOOKEEPER_CONNECT` names the server. If it names none, a server is started, and ends with the
/// playground. If the program was called with `--simulated`, an ensemble in memory takes its place.
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
    session_timeout: Duration,
}

#[derive(Debug)]
enum Ground {
    Server {
        ensemble: Box<TestEnsemble>,
        directory: NodePath,
    },
    Simulation(Simulation),
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
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let ground = match &arguments[..] {
            [] => on_server().await?,
            [simulated] if simulated == "--simulated" => simulated_ground(session_timeout),
            _ => bail!("{arguments:?}: only --simulated is known"),
        };
        Ok(Playground {
            ground,
            session_timeout,
        })
    }

    /// Opens a session: [`Session::connect`] with the connect string of the ensemble.
    ///
    /// # Errors
    ///
    /// Those of [`Session::connect`].
    pub async fn connect(&self) -> Result<Session, zookeeper_recipes_core::Error> {
        self.as_seen_by("example")
            .connect(self.session_timeout)
            .await
    }

    /// The server's tick: a session can outlast its timeout by so much.
    pub fn tick(&self) -> Duration {
        match &self.ground {
            Ground::Server { ensemble, .. } if ensemble.server().is_none() => USUAL_TICK,
            Ground::Server { .. } | Ground::Simulation(_) => TICK,
        }
    }

    /// Starts a process of this name that plays a part: this program once more or, in a simulation,
    /// a task that can be stopped and killed as a process can.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start<F>(&self, name: &str, part: fn(Part) -> F) -> anyhow::Result<Process>
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let place = self.as_seen_by(name);
        Process::start(name, place, self.session_timeout, part)
    }

    fn as_seen_by(&self, process: &str) -> Place {
        match &self.ground {
            Ground::Server {
                ensemble,
                directory,
            } => Place::Server(format!("{}{directory}", ensemble.connect_string())),
            Ground::Simulation(simulation) => Place::Simulation(simulation.process(process)),
        }
    }

    /// Removes the directory and all that is in it.
    ///
    /// # Errors
    ///
    /// When the server does not answer, or refuses.
    pub async fn close(self) -> anyhow::Result<()> {
        // A simulation ends with its last handle.
        if let Ground::Server {
            ensemble,
            directory,
        } = &self.ground
        {
            let session = Session::connect(ensemble.connect_string()).await?;
            let server = session.server(directory).await?;
            remove(&*server, directory.as_str()).await?;
            drop(server);
            session.close().await;
        }
        Ok(())
    }
}

async fn on_server() -> anyhow::Result<Ground> {
    let options = ServerOptions::new().tick_time(TICK);
    let ensemble = TestEnsemble::from_environment_or_start(options).await?;
    let directory = NodePath::new(&TestEnsemble::directory("recipes-example"))?;
    let session = Session::connect(ensemble.connect_string()).await?;
    let server = session.server(&directory).await?;
    let anyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    server
        .create(directory.as_str(), b"", CreateMode::Persistent, &anyone)
        .await?;
    drop(server);
    session.close().await;
    Ok(Ground::Server {
        ensemble: Box::new(ensemble),
        directory,
    })
}

fn simulated_ground(session_timeout: Duration) -> Ground {
    Ground::Simulation(Simulation::new(SimulationOptions {
        session_timeout,
        tick: TICK,
        ..SimulationOptions::default()
    }))
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
