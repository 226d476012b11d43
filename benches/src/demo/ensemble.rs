//! The ensemble of the demo: opened first, and left as it was found.

use std::time::Duration;

use zookeeper_recipes_core::{
    ConnectOptions, NodePath, Refusal, ServerError, Session, ensemble::ServerSession,
};
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_testkit::{ServerOptions, TestEnsemble};

use crate::output::say;

/// How long the removal of the demo's znodes may take.
pub(crate) const CLEANING: Duration = Duration::from_secs(10);

/// The interval between two looks at the znodes of an interrupted demo.
const LOOK: Duration = Duration::from_millis(50);

/// On what the demo runs.
pub(crate) enum Choice {
    /// On a server in this process, in memory.
    Embedded,
    /// On Apache's server, started for the demo.
    Apache,
    /// On the ensemble of this connect string.
    Named(String),
}

/// Starts a server, or takes the ensemble that is named. It answers when this returns.
///
/// An embedded server ends when it is dropped.
pub(crate) async fn open(choice: Choice) -> anyhow::Result<(TestEnsemble, Option<EmbeddedServer>)> {
    let (ensemble, embedded) = match choice {
        Choice::Named(connect_string) => {
            say(&format!("Using ZooKeeper at {connect_string}."));
            (TestEnsemble::external(&connect_string)?, None)
        }
        Choice::Apache => {
            let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
            let connect_string = ensemble.connect_string();
            say(&format!("Started Apache ZooKeeper at {connect_string}."));
            (ensemble, None)
        }
        Choice::Embedded => {
            let server = EmbeddedServer::start()?;
            let connect_string = server.connect_string();
            say(&format!(
                "Started an embedded server at {connect_string}, in memory. --server starts Apache's."
            ));
            (TestEnsemble::external(&connect_string)?, Some(server))
        }
    };
    // If no server answers, the demo ends before it has created anything.
    let session = Session::connect(ensemble.connect_string()).await?;
    session.close().await;
    Ok((ensemble, embedded))
}

/// Removes the demo's znodes, once the contenders have gone.
pub(crate) async fn clean(ensemble: &TestEnsemble, directory: &str) -> anyhow::Result<()> {
    match tokio::time::timeout(CLEANING, remove(ensemble, directory)).await {
        Ok(removed) => removed,
        Err(_) => Err(anyhow::anyhow!("not done after {CLEANING:?}")),
    }
}

async fn remove(ensemble: &TestEnsemble, directory: &str) -> anyhow::Result<()> {
    let options = ConnectOptions::new().connection_timeout(CLEANING / 2);
    let session = Session::connect_with(ensemble.connect_string(), options).await?;
    let server = session.server(&NodePath::new(directory)?).await?;
    for way in list(&*server, directory).await? {
        let path = format!("{directory}/{way}");
        // After an interrupt, the contenders go in the background.
        while !list(&*server, &path).await?.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        delete(&*server, &path).await?;
    }
    delete(&*server, directory).await?;
    drop(server);
    session.close().await;
    Ok(())
}

async fn list(server: &dyn ServerSession, path: &str) -> Result<Vec<String>, ServerError> {
    match server.list(path).await {
        Err(error) if error.is(Refusal::NoNode) => Ok(Vec::new()),
        answer => answer,
    }
}

async fn delete(server: &dyn ServerSession, path: &str) -> Result<(), ServerError> {
    match server.delete(path).await {
        Err(error) if error.is(Refusal::NoNode) => Ok(()),
        answer => answer,
    }
}
