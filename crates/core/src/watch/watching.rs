//! Reads with a watch, within the watch budget of a session.

use std::fmt;
use std::sync::Arc;

use futures_util::future::FutureExt;

use crate::error::Error;
use crate::path::NodePath;
use crate::server::ensemble::{Event, ServerSession, Stat, Watch};
use crate::server::error::{Refusal, ServerError};
use crate::session::handle::Session;
use crate::session::live::LiveSession;
use crate::watch::budget::{Kind, Purpose, Reserved, WatchBudget};
use crate::watch::sweep;
use crate::watch::sweep::{Look, Seen, Urgency};
use crate::watch::unwatch::Unfired;

/// Reads with a watch, within the watch budget of the session.
///
/// If the budget is used up, the session reads the znode from time to time instead. The returned
/// [`Watch`] then resolves when the znode may have changed, and the caller has to read it again.
pub struct Watching {
    live: Arc<LiveSession>,
    server: Arc<dyn ServerSession>,
    purpose: Purpose,
}

impl Session {
    /// The server side of the current ZooKeeper session, for an observer.
    ///
    /// # Errors
    ///
    /// Those of [`server`](Self::server).
    #[doc(hidden)]
    pub async fn observing(&self, path: &NodePath) -> Result<Watching, Error> {
        loop {
            let live = self.live(path.as_str()).await?;
            if let Ok(server) = live.server() {
                return Ok(Watching::new(live, server, Purpose::Observe));
            }
        }
    }
}

impl Watching {
    pub(crate) fn new(
        live: Arc<LiveSession>,
        server: Arc<dyn ServerSession>,
        purpose: Purpose,
    ) -> Watching {
        Watching {
            live,
            server,
            purpose,
        }
    }

    /// The session's server side.
    pub fn server(&self) -> &dyn ServerSession {
        &*self.server
    }

    /// Reads a znode, and watches for its change: [`ServerSession::get_and_watch`].
    ///
    /// # Errors
    ///
    /// Those of the read.
    pub async fn get_and_watch(&self, path: &str) -> Result<(Vec<u8>, Stat, Watch), ServerError> {
        if let Some(room) = self.room(Kind::Data, path) {
            let (data, stat, watch) = self.server.get_and_watch(path).await?;
            return Ok((data, stat, self.keeping(Kind::Data, path, watch, room)));
        }
        // The look begins before the read, so that no change between the two is missed.
        let urgency = match self.purpose {
            Purpose::Wait | Purpose::Window => Urgency::Waited,
            Purpose::Loss | Purpose::Observe => Urgency::Other,
        };
        let look = sweep::look_at(&self.live, path, urgency);
        let (data, stat) = self.server.get(path).await?;
        let unwatched = Unwatched {
            live: self.live.clone(),
            purpose: self.purpose,
            path: path.to_owned(),
            mzxid: stat.mzxid,
        };
        Ok((data, stat, unwatched.changed(look).boxed()))
    }

    /// Lists a znode's children, and watches them: [`ServerSession::list_and_watch`].
    ///
    /// # Errors
    ///
    /// Those of the list.
    pub async fn list_and_watch(&self, path: &str) -> Result<(Vec<String>, Watch), ServerError> {
        if let Some(room) = self.room(Kind::Children, path) {
            let (names, watch) = self.server.list_and_watch(path).await?;
            return Ok((names, self.keeping(Kind::Children, path, watch, room)));
        }
        let names = self.server.list(path).await?;
        Ok((names, self.pause()))
    }

    /// Watches for the creation of a znode: [`ServerSession::exists_and_watch`].
    ///
    /// The caller has just seen that the znode does not exist. Without budget, this does not read
    /// the znode again.
    ///
    /// # Errors
    ///
    /// Those of the request.
    pub async fn exists_and_watch(&self, path: &str) -> Result<(Option<Stat>, Watch), ServerError> {
        if let Some(room) = self.room(Kind::Existence, path) {
            let (stat, watch) = self.server.exists_and_watch(path).await?;
            return Ok((stat, self.keeping(Kind::Existence, path, watch, room)));
        }
        Ok((None, self.pause()))
    }

    fn keeping(&self, kind: Kind, path: &str, watch: Watch, room: Reserved) -> Watch {
        keeping(&self.live, kind, path, watch, Some(room))
    }

    fn room(&self, kind: Kind, path: &str) -> Option<Reserved> {
        let budget = self.live.attached::<WatchBudget>();
        budget.try_reserve(self.purpose, [(kind, path)])
    }

    /// Resolves after two sweep intervals, when the caller should read again.
    fn pause(&self) -> Watch {
        let (live, pause) = (self.live.clone(), 2 * sweep::interval(&self.live));
        async move {
            match tokio::time::timeout(pause, live.ended()).await {
                Ok(end) => Event::SessionEnded(end),
                Err(_) => Event::ChildrenChanged,
            }
        }
        .boxed()
    }
}

/// A znode for which no watch budget was left.
struct Unwatched {
    live: Arc<LiveSession>,
    purpose: Purpose,
    path: String,
    /// The transaction that last set the data that the caller has read.
    mzxid: i64,
}

impl Unwatched {
    /// Resolves when the znode is deleted or its data differs from the caller's data.
    ///
    /// The look notices the change, or a watch once there is budget for a watch.
    async fn changed(self, mut look: Look) -> Event {
        let budget = self.live.attached::<WatchBudget>();
        let wanted = [(Kind::Data, self.path.as_str())];
        let room = tokio::select! {
            biased;
            end = self.live.ended() => return Event::SessionEnded(end),
            event = self.seen(&mut look) => return event,
            room = budget.reserve(self.purpose, &wanted) => room,
        };
        // The reference is dropped before the wait, because it keeps the session open.
        let Ok(server) = self.live.server() else {
            return Event::SessionEnded(self.live.ended().await);
        };
        let set = server.get_and_watch(&self.path).await;
        drop(server);
        drop(look);
        match set {
            Ok((_, stat, watch)) if stat.mzxid == self.mzxid => {
                keeping(&self.live, Kind::Data, &self.path, watch, Some(room)).await
            }
            Err(error) if error.is(Refusal::NoNode) => Event::Deleted,
            // The caller gets the refusal when it reads again.
            _ => Event::DataChanged,
        }
    }

    async fn seen(&self, look: &mut Look) -> Event {
        look.until(|seen| match seen {
            Seen::Gone => Some(Event::Deleted),
            Seen::There(there) if there.1.mzxid == self.mzxid => None,
            Seen::There(_) | Seen::Refused(_) => Some(Event::DataChanged),
        })
        .await
    }
}

/// A watch that gives its budget back when it has resolved or is dropped.
pub(crate) fn keeping(
    live: &Arc<LiveSession>,
    kind: Kind,
    path: &str,
    watch: Watch,
    room: Option<Reserved>,
) -> Watch {
    Unfired::new(live, kind, path, watch, room).event().boxed()
}

impl fmt::Debug for Watching {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watching")
            .field("server", &self.server)
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::session::scripted::{Scripted, TIMEOUT};

    /// A path that is longer than the whole watch budget.
    fn long_path() -> String {
        "/a".repeat(100_000)
    }

    #[tokio::test(start_paused = true)]
    async fn change_is_seen_without_room_for_a_watch() {
        let (live, script) = Scripted::open(Duration::from_millis(1));
        let watching = Watching::new(live, script.clone(), Purpose::Observe);
        script.show(1, 1);
        let read = watching.get_and_watch(&long_path()).await;
        let (_, _, changed) = read.expect("it is read");
        script.show(1, 2);
        let changed = timeout(TIMEOUT, changed).await;
        assert_eq!(changed, Ok(Event::DataChanged));
    }

    #[tokio::test(start_paused = true)]
    async fn change_before_there_is_room_for_the_watch_is_seen() {
        let (live, script) = Scripted::open(Duration::from_millis(1));
        let watching = Watching::new(live.clone(), script.clone(), Purpose::Wait);
        let long = "/a".repeat(40_000);
        let room = live.attached::<WatchBudget>();
        let taken = room.try_reserve(Purpose::Wait, [(Kind::Data, &*long)]);
        assert!(taken.is_some());
        let other = "/b".repeat(20_000);
        script.show(1, 1);
        let (_, _, changed) = watching.get_and_watch(&other).await.expect("it is read");
        script.show(1, 2);
        drop(taken);
        let changed = timeout(TIMEOUT, changed).await;
        assert_eq!(changed, Ok(Event::DataChanged));
    }
}
