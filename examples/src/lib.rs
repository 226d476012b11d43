//! A ZooKeeper for the examples to play with.
//!
//! Each runs on a server in its own process, in memory: `cargo run --example exclusive_lock`. If
//! `ZOOKEEPER_CONNECT` is set, it runs on the servers named there.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::{CreateMode, Permission, ServerSession};
use zookeeper_recipes_core::{Acl, AuthId, Identity, NodePath, Refusal, Session};
use zookeeper_recipes_simulation::EmbeddedServer;

mod process;

pub use self::process::{Part, Process};

/// Names the servers, in place of an embedded one.
pub const CONNECT_VARIABLE: &str = "ZOOKEEPER_CONNECT";

/// The tick of an embedded server.
const TICK: Duration = Duration::from_millis(500);

/// ZooKeeper's default tick, which the servers of [`CONNECT_VARIABLE`] are assumed to have.
const DEFAULT_TICK: Duration = Duration::from_secs(2);

/// A directory of its own on a ZooKeeper server.
///
/// [`CONNECT_VARIABLE`] names the servers. If it names none, an embedded server serves in this
/// process, in memory, and ends with the playground.
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
    connect_string: String,
    /// Serves until it is dropped. `None` on other servers.
    embedded: Option<EmbeddedServer>,
    directory: NodePath,
    session_timeout: Duration,
}

impl Playground {
    /// Starts a server if there is none to connect to, and creates the directory.
    pub async fn open() -> anyhow::Result<Playground> {
        Playground::open_with(Duration::from_secs(10)).await
    }

    /// As [`open`](Self::open), with this session timeout.
    pub async fn open_with(session_timeout: Duration) -> anyhow::Result<Playground> {
        let named = std::env::var(CONNECT_VARIABLE).unwrap_or_default();
        let embedded = match named.is_empty() {
            true => Some(EmbeddedServer::start()?),
            false => None,
        };
        let connect_string = embedded
            .as_ref()
            .map_or(named, EmbeddedServer::connect_string);
        let name = Identity::random().name("recipes-example");
        let playground = Playground {
            connect_string,
            embedded,
            directory: NodePath::new(&format!("/{name}"))?,
            session_timeout,
        };
        let session = Session::connect(&playground.connect_string).await?;
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
    pub fn connect_string(&self) -> String {
        format!("{}{}", self.connect_string, self.directory)
    }

    /// Opens a session: [`Session::connect`] with the connect string of the ensemble.
    pub async fn connect(&self) -> Result<Session, zookeeper_recipes_core::Error> {
        process::connect(&self.connect_string(), self.session_timeout).await
    }

    /// The server's tick: a session can outlast its timeout by so much.
    pub fn tick(&self) -> Duration {
        match &self.embedded {
            Some(_) => TICK,
            None => DEFAULT_TICK,
        }
    }

    /// Starts a process of this name that plays a part: this program once more.
    pub fn start(&self, name: &str) -> anyhow::Result<Process> {
        Process::start(name, &self.connect_string(), self.session_timeout)
    }

    /// Removes the directory and all that is in it.
    pub async fn close(self) -> anyhow::Result<()> {
        let session = Session::connect(&self.connect_string).await?;
        let server = session.server(&self.directory).await?;
        remove(&server, self.directory.as_str()).await?;
        drop(server);
        session.close().await;
        Ok(())
    }
}

async fn remove(server: &ServerSession, path: &str) -> anyhow::Result<()> {
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
