//! The ensemble of the demo: opened first, and left as it was found.

use std::time::Duration;

use zookeeper_recipes_core::{
    ConnectOptions, NodePath, Refusal, ServerError, Session, ensemble::ServerSession,
};
use zookeeper_recipes_testkit::{ServerOptions, TestEnsemble};

use crate::output::say;

/// How long the removal of the demo's znodes may take.
pub(crate) const CLEANING: Duration = Duration::from_secs(10);

/// The interval between two looks at the znodes of an interrupted demo.
const LOOK: Duration = Duration::from_millis(50);

/// Takes the ensemble of this connect string, or starts a server. It answers when this returns.
pub(crate) async fn open(connect: Option<&str>) -> anyhow::Result<TestEnsemble> {
    let ensemble = match connect {
        Some(connect_string) => {
            say(&format!("Using ZooKeeper at {connect_string}."));
            TestEnsemble::external(connect_string)?
        }
        None => {
            let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
            let connect_string = ensemble.connect_string();
            say(&format!("Started a ZooKeeper server at {connect_string}."));
            ensemble
        }
    };
    // If no server answers, the demo ends before it has created anything.
    let session = Session::connect(ensemble.connect_string()).await?;
    session.close().await;
    Ok(ensemble)
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
