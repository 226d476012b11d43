//! The alarm: tells when one's own znode has gone.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};

use crate::ensemble::{Event, ServerSession, Watch};
use crate::error::{Refusal, ServerError};
use crate::live::LiveSession;
use crate::watch_room::Reserved;

/// A watch on one's own znode that survives other people's writes to its data.
///
/// Resolves when the znode has been deleted, and never otherwise: the end of the session is told
/// by the session.
pub(crate) struct Alarm {
    gone: BoxFuture<'static, ()>,
}

impl Alarm {
    /// Goes on from a watch that has just been set on `path`.
    pub(crate) fn armed(
        live: Arc<LiveSession>,
        server: Arc<dyn ServerSession>,
        path: String,
        watch: Watch,
        room: Option<Reserved>,
    ) -> Alarm {
        Alarm {
            gone: keep_watching(live, server, path, Some((watch, room))).boxed(),
        }
    }

    /// Sets the watch first, once it is polled.
    pub(crate) fn unarmed(
        live: Arc<LiveSession>,
        server: Arc<dyn ServerSession>,
        path: String,
    ) -> Alarm {
        Alarm {
            gone: keep_watching(live, server, path, None).boxed(),
        }
    }

    /// Resolves when the znode has gone.
    ///
    /// Cancel safe: may be dropped and called again.
    pub(crate) async fn gone(&mut self) {
        (&mut self.gone).await;
    }
}

async fn keep_watching(
    live: Arc<LiveSession>,
    server: Arc<dyn ServerSession>,
    path: String,
    watching: Option<(Watch, Option<Reserved>)>,
) {
    let mut room = None;
    if let Some((watch, reserved)) = watching {
        if watch.await == Event::Deleted {
            return;
        }
        room = reserved;
    }
    loop {
        let reserved = match room.take() {
            Some(reserved) => reserved,
            None => {
                let wanted = live.watch_room().bytes(&path);
                tokio::select! {
                    biased;
                    reserved = live.watch_room().reserve(wanted) => reserved,
                    () = look_until_gone(&live, &*server, &path) => return,
                }
            }
        };
        match server.get_and_watch(&path).await {
            Ok((_, _, watch)) => {
                match watch.await {
                    Event::Deleted => return,
                    Event::SessionEnded(_) => return std::future::pending().await,
                    Event::Created | Event::DataChanged | Event::ChildrenChanged => {}
                }
                room = Some(reserved);
            }
            Err(error) if error.is(Refusal::NoNode) => return,
            // The request waits for the connection by itself, so this does not spin.
            Err(ServerError::OutcomeUnknown(_)) => {
                tokio::time::sleep(crate::backoff::FIRST).await;
                room = Some(reserved);
            }
            // Whoever may not read its own znode learns of its loss from the session alone.
            Err(ServerError::Refused(refusal)) => {
                tracing::warn!(%path, %refusal, "no watch on one's own znode");
                return std::future::pending().await;
            }
            Err(ServerError::SessionOver(_)) => return std::future::pending().await,
        }
    }
}

/// Looks from time to time whether the znode is there, until it is not.
async fn look_until_gone(live: &LiveSession, server: &dyn ServerSession, path: &str) {
    loop {
        tokio::time::sleep(live.probe_interval()).await;
        if server
            .get(path)
            .await
            .is_err_and(|error| error.is(Refusal::NoNode))
        {
            return;
        }
    }
}
