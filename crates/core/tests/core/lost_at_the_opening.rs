//! A session that is lost before it is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use zookeeper_recipes_core::ensemble::{Connector, Ensemble, ServerSession};
use zookeeper_recipes_core::{ConnectOptions, InvalidInput, ServerError, Session, SessionEnd};
use zookeeper_recipes_simulation::Simulation;

/// Its first sessions have expired before they are up.
#[derive(Debug)]
struct LosesFirst {
    ensemble: Arc<dyn Ensemble>,
    lost: usize,
}

impl Ensemble for LosesFirst {
    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        Ok(Arc::new(LosingConnector {
            connector: self.ensemble.clone().connector(options)?,
            left: AtomicUsize::new(self.lost),
        }))
    }

    fn now(&self) -> Duration {
        self.ensemble.now()
    }

    fn address(&self) -> String {
        self.ensemble.address()
    }
}

#[derive(Debug)]
struct LosingConnector {
    connector: Arc<dyn Connector>,
    left: AtomicUsize,
}

impl Connector for LosingConnector {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        let left = self.left.load(Ordering::Relaxed);
        match left.checked_sub(1) {
            Some(left) => {
                self.left.store(left, Ordering::Relaxed);
                ready(Err(ServerError::SessionOver(SessionEnd::Expired))).boxed()
            }
            None => self.connector.connect(),
        }
    }

    fn asked_timeout(&self) -> Option<Duration> {
        self.connector.asked_timeout()
    }
}

async fn open(lost: usize) -> Result<Session, zookeeper_recipes_core::Error> {
    let ensemble = LosesFirst {
        ensemble: Simulation::default().ensemble("one"),
        lost,
    };
    Session::open(Arc::new(ensemble), ConnectOptions::new()).await
}

#[tokio::test(start_paused = true)]
async fn session_that_is_lost_before_it_is_up_is_tried_again_until_the_connection_timeout() {
    let session = open(3).await.expect("the fourth one is up");
    assert!(session.is_connected());
    let error = open(usize::MAX).await.expect_err("none is ever up");
    assert!(error.to_string().contains("expired"), "{error}");
}
