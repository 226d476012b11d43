//! What the examples stand on: a ZooKeeper of their own to play with.
//!
//! Run one with `cargo run --example exclusive_lock`.

use std::error::Error;

use zookeeper_recipes_lock::Session;
use zookeeper_recipes_lock::core::ensemble::{CreateMode, Permission, ServerSession};
use zookeeper_recipes_lock::core::{Acl, AuthId, NodePath, Refusal};
use zookeeper_recipes_testkit::{ServerOptions, TestEnsemble};

/// A directory of its own on a ZooKeeper server: on the one that `ZOOKEEPER_CONNECT` names, else
/// on one that is started for it and ends with it.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_examples::Playground;
/// use zookeeper_recipes_lock::Session;
///
/// let playground = Playground::open().await?;
/// let session = Session::connect(playground.connect_string()).await?;
/// session.close().await;
/// playground.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Playground {
    ensemble: TestEnsemble,
    directory: NodePath,
    connect_string: String,
}

impl Playground {
    /// Starts the server where there is none to connect to, and creates the directory.
    ///
    /// # Errors
    ///
    /// When no server can be started, or none answers.
    pub async fn open() -> Result<Playground, Box<dyn Error>> {
        let ensemble = TestEnsemble::from_environment_or_start(ServerOptions::new()).await?;
        let directory = NodePath::new(&TestEnsemble::directory("recipes-example"))?;
        let connect_string = format!("{}{directory}", ensemble.connect_string());
        let session = Session::connect(ensemble.connect_string()).await?;
        let server = session.server(&directory).await?;
        let anyone = [Acl::new(Permission::ALL, AuthId::anyone())];
        server
            .create(directory.as_str(), b"", CreateMode::Persistent, &anyone)
            .await?;
        drop(server);
        session.close().await;
        Ok(Playground {
            ensemble,
            directory,
            connect_string,
        })
    }

    /// The connect string, with the directory as its chroot.
    pub fn connect_string(&self) -> &str {
        &self.connect_string
    }

    /// Removes the directory and all that is in it.
    ///
    /// # Errors
    ///
    /// When the server does not answer, or refuses.
    pub async fn close(self) -> Result<(), Box<dyn Error>> {
        let session = Session::connect(self.ensemble.connect_string()).await?;
        let server = session.server(&self.directory).await?;
        remove(&*server, self.directory.as_str()).await?;
        drop(server);
        session.close().await;
        Ok(())
    }
}

async fn remove(server: &dyn ServerSession, path: &str) -> Result<(), Box<dyn Error>> {
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
            // What was ephemeral has gone by itself, and so may an empty container.
            Err(error) if error.is(Refusal::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
