//! The loss watch: notices that a znode of this process is deleted, or written to by others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{BoxFuture, FutureExt};

use crate::events::TARGET;
use crate::hold::own_znode::Znode;
use crate::hold_state::LossReason;
use crate::retry::{Backoff, FIRST_WAIT};
use crate::server::ensemble::{EventType, ServerSession, Stat, Watch, WatchEvent};
use crate::server::error::{Refusal, ServerError};
use crate::sync::ready_now;

/// A watch on the owner's znode that is set again after each event.
///
/// The watch resolves when the znode is deleted. If only the owner can write to the znode, it also
/// resolves when somebody else has written. It does not resolve if the session ends: the session
/// itself reports its end.
pub(crate) struct LossWatch {
    watching: BoxFuture<'static, LossReason>,
    /// The result of `watching`, once it has resolved.
    loss: Option<LossReason>,
    is_set: Arc<AtomicBool>,
}

impl Znode {
    /// How the owner's znode was lost, by the znode found at its path.
    ///
    /// Nobody but the owner should be able to write to some znodes. The waiters take such a write for
    /// a release.
    pub(crate) fn loss(&self, stat: &Stat) -> Option<LossReason> {
        if !self.is_still(stat) {
            return Some(LossReason::Deleted);
        }
        let was_written = self.is_closed_to_others() && stat.version != 0;
        was_written.then_some(LossReason::Written)
    }

    fn loss_by(&self, event: WatchEvent) -> Option<LossReason> {
        match event {
            WatchEvent::Fired(EventType::NodeDeleted) => Some(LossReason::Deleted),
            WatchEvent::Fired(EventType::NodeDataChanged) if self.is_closed_to_others() => {
                Some(LossReason::Written)
            }
            _ => None,
        }
    }
}

impl LossWatch {
    /// Continues this watch. If there is none, sets one when the loss watch is first polled.
    pub(crate) fn new(znode: Znode, server: Arc<ServerSession>, watch: Option<Watch>) -> LossWatch {
        let is_set = Arc::new(AtomicBool::new(watch.is_some()));
        let watching = watch_until_lost(znode, server, watch, is_set.clone());
        LossWatch {
            watching: watching.boxed(),
            loss: None,
            is_set,
        }
    }

    /// Resolves when the znode is no longer its owner's.
    ///
    /// Cancel safe: the future may be dropped, and the method called again.
    pub(crate) async fn lost(&mut self) -> LossReason {
        match self.loss {
            Some(loss) => loss,
            None => *self.loss.insert((&mut self.watching).await),
        }
    }

    /// True if the watch is set and has reported nothing. False if it is about to be set again.
    pub(crate) fn is_certain(&mut self) -> Result<bool, LossReason> {
        match ready_now(self.lost()) {
            Some(loss) => Err(loss),
            None => Ok(self.is_set.load(Ordering::Relaxed)),
        }
    }
}

async fn watch_until_lost(
    znode: Znode,
    server: Arc<ServerSession>,
    mut watch: Option<Watch>,
    is_set: Arc<AtomicBool>,
) -> LossReason {
    let longest = znode.live().timeout;
    let mut backoff = Backoff::up_to(longest);
    loop {
        if let Some(watch) = watch.take() {
            let event = watch.await;
            is_set.store(false, Ordering::Relaxed);
            if let Some(loss) = znode.loss_by(event) {
                return loss;
            }
        }
        let read = match znode.has_unique_name() {
            true => server.get_and_keep_watch(znode.path()),
            false => server.get_and_watch(znode.path()),
        };
        match read.await {
            Ok((_, stat, set)) => {
                if let Some(loss) = znode.loss(&stat) {
                    return loss;
                }
                is_set.store(true, Ordering::Relaxed);
                watch = Some(set);
                backoff = Backoff::up_to(longest);
            }
            Err(error) if error.is(Refusal::NoNode) => return LossReason::Deleted,
            // The request itself waits for the connection, so this loop does not spin.
            Err(ServerError::OutcomeUnknown(_)) => Box::pin(tokio::time::sleep(FIRST_WAIT)).await,
            // The server may accept a later request, and until then only the session reports a
            // loss.
            Err(ServerError::Refused(refusal)) => {
                if backoff.is_new() {
                    let path = znode.path();
                    tracing::warn!(target: TARGET, path, %refusal, "the server refuses a loss watch");
                }
                Box::pin(backoff.wait()).await;
            }
            Err(ServerError::SessionOver(_)) => return std::future::pending().await,
        }
    }
}
