//! The alarm: tells when one's own znode has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{BoxFuture, FutureExt};

use crate::ensemble::{Event, ServerSession, Stat, Watch};
use crate::error::{Refusal, ServerError};
use crate::live::LiveSession;
use crate::watch_room::Reserved;

/// A watch on one's own znode that survives other people's writes to its data.
///
/// Resolves when the znode stands for its owner no more, and never otherwise: the end of the
/// session is told by the session.
pub(crate) struct Alarm {
    gone: BoxFuture<'static, Gone>,
    is_armed: Arc<AtomicBool>,
}

/// How a znode came to stand for its owner no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Deleted,
    /// It is there still, but was written to, which nobody but its owner should be able to do:
    /// whoever waits for it takes that for a release.
    Written,
}

/// What is known of a znode at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The watch is set, and has seen nothing.
    Certain,
    /// The watch is about to be set anew.
    Doubtful,
    Gone,
}

/// One's own znode, as an alarm watches it.
pub(crate) struct Watched {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) server: Arc<dyn ServerSession>,
    pub(crate) path: String,
    /// Whether nobody but its owner should be able to write to it.
    pub(crate) announces: bool,
}

impl Watched {
    /// Whether this is how a znode looks that was written to and should not have been.
    pub(crate) fn was_written(&self, stat: &Stat) -> bool {
        self.announces && stat.version != 0
    }

    fn gone_by(&self, event: Event) -> Option<Gone> {
        match event {
            Event::Deleted => Some(Gone::Deleted),
            Event::DataChanged if self.announces => Some(Gone::Written),
            _ => None,
        }
    }
}

impl Alarm {
    /// Goes on from a watch that has just been set.
    pub(crate) fn armed(watched: Watched, watch: Watch, room: Option<Reserved>) -> Alarm {
        let is_armed = Arc::new(AtomicBool::new(true));
        let armed = is_armed.clone();
        let gone = async move {
            let event = watch.await;
            armed.store(false, Ordering::Relaxed);
            match watched.gone_by(event) {
                Some(gone) => gone,
                None => keep_watching(watched, room, &armed).await,
            }
        };
        Alarm {
            gone: gone.boxed(),
            is_armed,
        }
    }

    /// Sets the watch first, once it is polled.
    pub(crate) fn unarmed(watched: Watched) -> Alarm {
        let is_armed = Arc::new(AtomicBool::new(false));
        let armed = is_armed.clone();
        Alarm {
            gone: async move { keep_watching(watched, None, &armed).await }.boxed(),
            is_armed,
        }
    }

    /// Resolves when the znode stands for its owner no more.
    ///
    /// Cancel safe: may be dropped and called again, until it has resolved.
    pub(crate) async fn gone(&mut self) -> Gone {
        (&mut self.gone).await
    }

    /// What can be told of the znode from all that the session has heard until now.
    pub(crate) fn look(&mut self) -> Standing {
        match self.gone().now_or_never() {
            Some(_) => Standing::Gone,
            None if self.is_armed.load(Ordering::Relaxed) => Standing::Certain,
            None => Standing::Doubtful,
        }
    }
}

async fn keep_watching(
    watched: Watched,
    mut room: Option<Reserved>,
    is_armed: &AtomicBool,
) -> Gone {
    let Watched {
        live, server, path, ..
    } = &watched;
    loop {
        let reserved = match room.take() {
            Some(reserved) => reserved,
            None => {
                let wanted = live.watch_room().bytes(path);
                tokio::select! {
                    biased;
                    reserved = live.watch_room().reserve(wanted) => reserved,
                    gone = look_until_gone(&watched) => return gone,
                }
            }
        };
        match server.get_and_watch(path).await {
            Ok((_, stat, _)) if watched.was_written(&stat) => return Gone::Written,
            Ok((_, _, watch)) => {
                is_armed.store(true, Ordering::Relaxed);
                let event = watch.await;
                is_armed.store(false, Ordering::Relaxed);
                if let Some(gone) = watched.gone_by(event) {
                    return gone;
                }
                if let Event::SessionEnded(_) = event {
                    return std::future::pending().await;
                }
                room = Some(reserved);
            }
            Err(error) if error.is(Refusal::NoNode) => return Gone::Deleted,
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
async fn look_until_gone(watched: &Watched) -> Gone {
    loop {
        tokio::time::sleep(watched.live.probe_interval()).await;
        match watched.server.get(&watched.path).await {
            Ok((_, stat)) if watched.was_written(&stat) => return Gone::Written,
            Err(error) if error.is(Refusal::NoNode) => return Gone::Deleted,
            _ => {}
        }
    }
}
