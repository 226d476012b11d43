//! Another ensemble, whose sessions a test counts or changes.

use std::sync::Arc;

use futures_util::future::FutureExt;
use zookeeper_recipes_core::ConnectOptions;
use zookeeper_recipes_core::ensemble::{Ensemble, RawSession, SessionId};

use crate::fake::{FakeEnsemble, FakeSession, Open};

/// This ensemble, with each of its sessions as `alter` makes it.
///
/// `alter` gets the id of the session and what sends its requests. [`passing`] changes nothing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use zookeeper_recipes_core::{ConnectOptions, Session};
/// use zookeeper_recipes_simulation::Simulation;
/// use zookeeper_recipes_testkit::altered::{altered, passing};
/// use zookeeper_recipes_testkit::fake::FakeSession;
///
/// let sent = Arc::new(AtomicU64::new(0));
/// let counted = sent.clone();
/// let ensemble = altered(Simulation::default().ensemble("worker"), move |_, raw| {
///     let (below, counted) = (raw.clone(), counted.clone());
///     FakeSession {
///         send: Box::new(move |request| {
///             counted.fetch_add(1, Ordering::Relaxed);
///             below.send(request)
///         }),
///         ..passing(raw)
///     }
/// });
/// let session = Session::open(Arc::new(ensemble), ConnectOptions::new()).await?;
/// session.server(&"/locks".parse()?).await?.list("/").await?;
/// assert!(sent.load(Ordering::Relaxed) >= 1);
/// # Ok(())
/// # }
/// ```
pub fn altered(
    ensemble: Arc<dyn Ensemble>,
    alter: impl Fn(SessionId, Arc<dyn RawSession>) -> FakeSession + Send + Sync + 'static,
) -> FakeEnsemble {
    let (facts, alter) = (ensemble.facts().clone(), Arc::new(alter));
    let connector = move |options: &ConnectOptions| {
        let (connector, alter) = (ensemble.clone().connector(options)?, alter.clone());
        let open: Open = Box::new(move || {
            let (connector, alter) = (connector.clone(), alter.clone());
            async move {
                let mut opened = connector.connect().await?;
                for raw in [&mut opened.raw].into_iter().chain(&mut opened.left_open) {
                    *raw = Arc::new(alter(opened.id, raw.clone()));
                }
                Ok(opened)
            }
            .boxed()
        });
        Ok(open)
    };
    FakeEnsemble {
        facts,
        connector: Box::new(connector),
    }
}

/// A session that changes nothing.
pub fn passing(raw: Arc<dyn RawSession>) -> FakeSession {
    let [sends, watches, leaves, closes] = [(); 4].map(|()| raw.clone());
    FakeSession {
        orders_events: raw.orders_events(),
        send: Box::new(move |request| sends.send(request)),
        watch_tree: Some(Box::new(move |path| watches.watch_tree(path))),
        leave_server: Box::new(move || leaves.leave_server()),
        close: Box::new(move || closes.close()),
    }
}
