//! Values that are read from the server, and kept up to date by a task.

use std::sync::Arc;

use futures_util::future::FutureExt;
use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Backoff, NodePath, Refusal, ServerError, Session};

use crate::events::TARGET;

/// A value at the server, with its watches.
pub(crate) trait Source: Send + 'static {
    type Value: PartialEq + Send + Sync + 'static;

    /// The path that the value is read below.
    fn path(&self) -> &NodePath;

    /// Forgets what was read, because a request has failed or the session is another one.
    fn reset(&mut self);

    /// Reads what may have changed, and watches it.
    fn read(
        &mut self,
        server: &dyn ServerSession,
    ) -> impl Future<Output = Result<Self::Value, ServerError>> + Send;

    /// Resolves when the value may have changed since the last read.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;
}

/// The last known value. `None` until it was read once.
pub(crate) type Kept<T> = watch::Receiver<Option<Arc<T>>>;

/// Keeps a value up to date by a task that ends with the last receiver.
pub(crate) fn keep<S: Source>(session: &Session, source: S) -> Kept<S::Value> {
    let (sender, receiver) = watch::channel(None);
    let ensemble = session.ensemble().clone();
    let session = session.clone();
    let task = async move {
        tokio::select! {
            biased;
            () = sender.closed() => {}
            () = keep_up_to_date(&sender, &session, source) => {}
        }
    };
    tokio::spawn(ensemble.task(task.boxed()));
    receiver
}

/// Returns when the session is closed.
async fn keep_up_to_date<S: Source>(
    sender: &watch::Sender<Option<Arc<S::Value>>>,
    session: &Session,
    mut source: S,
) {
    // A server may open a session before it has caught up with its leader.
    let mut caught_up = None;
    let mut backoff = Backoff::default();
    while let Ok(server) = session.server(source.path()).await {
        let read = async {
            if caught_up != Some(server.id()) {
                source.reset();
                server.sync(source.path().as_str()).await?;
                caught_up = Some(server.id());
            }
            source.read(&*server).await
        };
        let read = read.await;
        drop(server);
        match read {
            Ok(value) => {
                sender.send_if_modified(|kept| {
                    let is_new = kept.as_deref() != Some(&value);
                    if is_new {
                        *kept = Some(Arc::new(value));
                    }
                    is_new
                });
                backoff = Backoff::default();
                source.changed().await;
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
