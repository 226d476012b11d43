//! The loss watch: tells an owner that its znode no longer stands for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{BoxFuture, FutureExt};

use crate::hold::own_znode::OwnZnode;
use crate::retry::{Backoff, FIRST};
use crate::server::ensemble::{Event, ServerSession, Stat, Watch};
use crate::server::error::{Refusal, ServerError};

/// A watch on the owner's znode that is set again after each event.
///
/// Resolves when the znode is deleted. If only the owner can write to the znode, it also resolves
/// when somebody else has written. Does not resolve if the session ends: the session itself tells
/// of its end.
pub(crate) struct LossWatch {
    watching: BoxFuture<'static, Gone>,
    /// The result of `watching`, once it has resolved.
    gone: Option<Gone>,
    is_armed: Arc<AtomicBool>,
}

/// Why a znode no longer stands for its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Deleted,
    /// The znode is there, but somebody wrote to it.
    ///
    /// Nobody but the owner should be able to write. The waiters take the write for a release.
    Written,
}

/// What a loss watch knows of its znode at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The watch is set, and has reported nothing.
    Certain,
    /// The watch is not set, and is about to be set again.
    Doubtful,
    Gone,
}

/// The znode that a loss watch watches, and the server that tells of it.
pub(crate) struct Watched {
    pub(crate) server: Arc<dyn ServerSession>,
    pub(crate) znode: OwnZnode,
}

impl Watched {
    /// How the owner's znode was lost, by the znode found at its path.
    pub(crate) fn gone(&self, stat: &Stat) -> Option<Gone> {
        if !self.znode.is_still(stat) {
            return Some(Gone::Deleted);
        }
        let was_written = self.znode.is_written_by_owner_alone() && stat.version != 0;
        was_written.then_some(Gone::Written)
    }

    fn gone_by(&self, event: Event) -> Option<Gone> {
        match event {
            Event::Deleted => Some(Gone::Deleted),
            Event::DataChanged if self.znode.is_written_by_owner_alone() => Some(Gone::Written),
            _ => None,
        }
    }
}

impl LossWatch {
    /// Continues a watch that is set already.
    pub(crate) fn armed(watched: Watched, watch: Watch) -> LossWatch {
        LossWatch::begin(watched, Some(watch))
    }

    /// Sets the watch once the loss watch is polled.
    pub(crate) fn unarmed(watched: Watched) -> LossWatch {
        LossWatch::begin(watched, None)
    }

    fn begin(watched: Watched, watch: Option<Watch>) -> LossWatch {
        let is_armed = Arc::new(AtomicBool::new(watch.is_some()));
        let watching = keep_watching(watched, watch, is_armed.clone());
        LossWatch {
            watching: watching.boxed(),
            gone: None,
            is_armed,
        }
    }

    /// Resolves when the znode no longer stands for its owner.
    ///
    /// Cancel safe: the future may be dropped, and the method called again.
    pub(crate) async fn gone(&mut self) -> Gone {
        if self.gone.is_none() {
            self.gone = Some((&mut self.watching).await);
        }
        match self.gone {
            Some(gone) => gone,
            None => std::future::pending().await,
        }
    }

    /// What the session's events until now say of the znode.
    pub(crate) fn look(&mut self) -> Certainty {
        match self.gone().now_or_never() {
            Some(_) => Certainty::Gone,
            None if self.is_armed.load(Ordering::Relaxed) => Certainty::Certain,
            None => Certainty::Doubtful,
        }
    }
}

async fn keep_watching(
    watched: Watched,
    mut watch: Option<Watch>,
    is_armed: Arc<AtomicBool>,
) -> Gone {
    let Watched { server, znode } = &watched;
    let longest = znode.live().timeout();
    let mut backoff = Backoff::up_to(longest);
    loop {
        if let Some(watch) = watch.take() {
            let event = watch.await;
            is_armed.store(false, Ordering::Relaxed);
            if let Some(gone) = watched.gone_by(event) {
                return gone;
            }
            if let Event::SessionEnded(_) = event {
                return std::future::pending().await;
            }
        }
        match server.get_and_watch(znode.path()).await {
            Ok((_, stat, set)) => {
                if let Some(gone) = watched.gone(&stat) {
                    return gone;
                }
                is_armed.store(true, Ordering::Relaxed);
                watch = Some(set);
                backoff = Backoff::up_to(longest);
            }
            Err(error) if error.is(Refusal::NoNode) => return Gone::Deleted,
            // The request itself waits for the connection, so this loop does not spin.
            Err(ServerError::OutcomeUnknown(_)) => tokio::time::sleep(FIRST).await,
            // The server may accept a later request, and until then only the session tells of a
            // loss.
            Err(ServerError::Refused(refusal)) => {
                if backoff.is_new() {
                    tracing::warn!(path = znode.path(), %refusal, "the server refuses a loss watch");
                }
                backoff.wait().await;
            }
            Err(ServerError::SessionOver(_)) => return std::future::pending().await,
        }
    }
}
