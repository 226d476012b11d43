//! The loss watch: tells an owner that its znode no longer stands for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt};

use crate::backoff::Backoff;
use crate::hold::own_znode::OwnNode;
use crate::server::ensemble::{Event, ServerSession, Stat, Watch};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::LiveSession;
use crate::sync::lock;
use crate::watch::budget::{Kind, Purpose, Reserved, WatchBudget};
use crate::watch::sweep;
use crate::watch::sweep::{Seen, Urgency};
use crate::watch::watching::keeping;

/// A watch on the owner's znode that is set again after each event.
///
/// Resolves when the znode is deleted. If only the owner can write to the znode, it also resolves
/// when somebody else has written. Does not resolve if the session ends: the session itself tells
/// of its end.
pub(crate) struct LossWatch {
    watched: Arc<Watched>,
    watching: BoxFuture<'static, Gone>,
    /// The result of `watching`, once it has resolved.
    gone: Option<Gone>,
    is_armed: Arc<AtomicBool>,
    room: Room,
}

/// The part of the watch budget for the current watch or the next one.
///
/// Shared with `watching`.
type Room = Arc<Mutex<Option<Reserved>>>;

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
pub(crate) enum Standing {
    /// The watch is set, and has reported nothing.
    Certain,
    /// The watch is not set, and is about to be set again.
    Doubtful,
    Gone,
}

/// The znode that a loss watch watches, and the session that owns it.
pub(crate) struct Watched {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) server: Arc<dyn ServerSession>,
    pub(crate) node: OwnNode,
}

impl Watched {
    /// How the owner's znode was lost, by the znode found at its path.
    pub(crate) fn gone(&self, stat: &Stat) -> Option<Gone> {
        if !self.node.is_still(stat) {
            return Some(Gone::Deleted);
        }
        let was_written = self.node.is_written_by_owner_alone() && stat.version != 0;
        was_written.then_some(Gone::Written)
    }

    fn keeping(&self, watch: Watch) -> Watch {
        keeping(&self.live, Kind::Data, self.node.path(), watch, None)
    }

    fn gone_by(&self, event: Event) -> Option<Gone> {
        match event {
            Event::Deleted => Some(Gone::Deleted),
            Event::DataChanged if self.node.is_written_by_owner_alone() => Some(Gone::Written),
            _ => None,
        }
    }
}

impl LossWatch {
    /// Continues a watch that is set already.
    pub(crate) fn armed(watched: Watched, watch: Watch, room: Option<Reserved>) -> LossWatch {
        let watch = watched.keeping(watch);
        LossWatch::begin(Arc::new(watched), Some(watch), room)
    }

    /// Sets the watch once the loss watch is polled.
    pub(crate) fn unarmed(watched: Watched) -> LossWatch {
        LossWatch::begin(Arc::new(watched), None, None)
    }

    fn begin(watched: Arc<Watched>, watch: Option<Watch>, room: Option<Reserved>) -> LossWatch {
        let is_armed = Arc::new(AtomicBool::new(watch.is_some()));
        let room = Arc::new(Mutex::new(room));
        let watching = keep_watching(watched.clone(), watch, room.clone(), is_armed.clone());
        LossWatch {
            watched,
            watching: watching.boxed(),
            gone: None,
            is_armed,
            room,
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
    pub(crate) fn look(&mut self) -> Standing {
        match self.gone().now_or_never() {
            Some(_) => Standing::Gone,
            None if self.is_armed.load(Ordering::Relaxed) => Standing::Certain,
            None => Standing::Doubtful,
        }
    }

    /// Resolves when the znode of a hold no longer stands for its owner.
    ///
    /// After one probe interval the watch leaves the waiters' share of the watch budget, and counts
    /// in the share of the loss watches. If that share is full, the watch is set again once there
    /// is room.
    pub(crate) async fn gone_from_hold(mut self) -> Gone {
        let lasts = tokio::time::sleep(self.watched.live.probe_interval());
        tokio::select! {
            biased;
            gone = self.gone() => return gone,
            () = lasts => {}
        }
        let may_stay = lock(&self.room)
            .as_mut()
            .is_none_or(|room| room.pass_to(Purpose::Loss));
        if !may_stay && self.look() != Standing::Gone {
            self = LossWatch::begin(self.watched, None, None);
        }
        self.gone().await
    }
}

async fn keep_watching(
    watched: Arc<Watched>,
    mut watch: Option<Watch>,
    room: Room,
    is_armed: Arc<AtomicBool>,
) -> Gone {
    let Watched { live, server, node } = &*watched;
    let mut backoff = Backoff::up_to(live.timeout());
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
        if lock(&room).is_none() {
            let budget = live.attached::<WatchBudget>();
            let wanted = [(Kind::Data, node.path())];
            let reserved = tokio::select! {
                biased;
                reserved = budget.reserve(Purpose::Loss, &wanted) => reserved,
                gone = look_until_gone(&watched) => return gone,
            };
            *lock(&room) = Some(reserved);
        }
        match server.get_and_watch(node.path()).await {
            Ok((_, stat, set)) => {
                if let Some(gone) = watched.gone(&stat) {
                    return gone;
                }
                is_armed.store(true, Ordering::Relaxed);
                watch = Some(watched.keeping(set));
                backoff = Backoff::up_to(live.timeout());
            }
            Err(error) if error.is(Refusal::NoNode) => return Gone::Deleted,
            // The request itself waits for the connection, so this loop does not spin.
            Err(ServerError::OutcomeUnknown(_)) => tokio::time::sleep(crate::backoff::FIRST).await,
            // The server may accept a later request, and until then only the session tells of a
            // loss.
            Err(ServerError::Refused(refusal)) => {
                if backoff.is_new() {
                    tracing::warn!(path = node.path(), %refusal, "the server refuses a loss watch");
                }
                backoff.wait().await;
            }
            Err(ServerError::SessionOver(_)) => return std::future::pending().await,
        }
    }
}

/// Reads the znode from time to time, until it no longer stands for its owner.
async fn look_until_gone(watched: &Watched) -> Gone {
    let Watched { live, node, .. } = watched;
    let mut look = sweep::look_at(live, node.path(), Urgency::Other);
    look.until(|seen| match seen {
        Seen::Gone => Some(Gone::Deleted),
        Seen::There(there) => watched.gone(&there.1),
        // The next sweep asks again.
        Seen::Refused(_) => None,
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::hold::guard::Guards;
    use crate::session::scripted::{Scripted, TIMEOUT};

    #[tokio::test(start_paused = true)]
    async fn another_znode_in_its_place_is_seen_without_room_for_a_watch() {
        let (live, server) = Scripted::open(Duration::from_millis(1));
        let long_path = "/a".repeat(100_000);
        let guard = live
            .attached::<Guards>()
            .of(&live, &*server, &long_path)
            .await;
        let guard = guard.expect("it is created");
        let node = OwnNode::doubtful(&live, &long_path, b"", guard).certain(1);
        server.show(2, 2);
        let watched = Watched { live, server, node };
        let gone = timeout(TIMEOUT, LossWatch::unarmed(watched).gone()).await;
        assert_eq!(gone, Ok(Gone::Deleted));
    }
}
