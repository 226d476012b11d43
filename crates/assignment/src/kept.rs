//! Values that are read from the server, and kept up to date by a task.

use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Backoff, Error, NodePath, Refusal, ServerError, Session};

use crate::events::TARGET;

/// A value at the server, with its watches.
pub(crate) trait Source: Send + 'static {
    type Value: Send;

    /// The path that the value is read below.
    fn path(&self) -> &NodePath;

    /// Forgets what was read, because a request has failed or the session is another one.
    fn reset(&mut self);

    /// Reads what may have changed, and watches it.
    fn read(
        &mut self,
        server: &ServerSession,
    ) -> impl Future<Output = Result<Self::Value, ServerError>> + Send;

    /// Resolves when the value may have changed since the last read.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;
}

/// Keeps what follows from a source up to date, by a task that ends with the last receiver. It has
/// its default until the source was read. What changes within `interval` leads to one new value.
pub(crate) fn keep<S: Source, T: Default + PartialEq + Send + Sync + 'static>(
    session: &Session,
    source: S,
    interval: Duration,
    mut follows: impl FnMut(S::Value) -> T + Send + 'static,
) -> watch::Receiver<T> {
    let (sender, receiver) = watch::channel(T::default());
    let ensemble = session.ensemble().clone();
    let session = session.clone();
    let task = async move {
        let mut is_known = false;
        let set = |value| {
            let was_known = std::mem::replace(&mut is_known, true);
            let value = follows(value);
            sender.send_if_modified(|now| {
                let is_new = !was_known || *now != value;
                *now = value;
                is_new
            });
        };
        tokio::select! {
            biased;
            () = sender.closed() => {}
            () = keep_up_to_date(&session, source, interval, set) => {}
        }
    };
    tokio::spawn(ensemble.task(task.boxed()));
    receiver
}

/// Waits until a kept value was read once.
pub(crate) async fn known<T>(
    session: &Session,
    path: &NodePath,
    mut kept: watch::Receiver<T>,
) -> Result<watch::Receiver<T>, Error> {
    while kept.changed().await.is_err() {
        // The session says why.
        session.server(path).await?;
    }
    Ok(kept)
}

/// Returns when the session is closed.
async fn keep_up_to_date<S: Source>(
    session: &Session,
    mut source: S,
    interval: Duration,
    mut set: impl FnMut(S::Value),
) {
    // A server may open a session before it has caught up with its leader.
    let mut caught_up = None;
    let mut backoff = Backoff::default();
    while let Ok(server) = session.server(source.path()).await {
        let read = async {
            if caught_up != Some(server.id) {
                source.reset();
                server.sync(source.path().as_str()).await?;
                caught_up = Some(server.id);
            }
            source.read(&server).await
        };
        let read = read.await;
        drop(server);
        match read {
            Ok(value) => {
                set(value);
                backoff = Backoff::default();
                source.changed().await;
                if !interval.is_zero() {
                    sleep(interval).await;
                }
                continue;
            }
            Err(ServerError::Refused(refusal)) if refusal != Refusal::Throttled => {
                tracing::warn!(target: TARGET, path = %source.path(), %refusal, "assignment not read");
            }
            Err(error) => {
                tracing::debug!(target: TARGET, path = %source.path(), %error, "reading the assignment again");
            }
        }
        source.reset();
        backoff.wait().await;
    }
}
