//! Watches that are dropped before they have seen anything.
//!
//! The client library takes such a watch off at the server. If that request breaks the connection
//! again and again, watches are kept until they see something. Connections also break for other
//! reasons: so now and then, ever more rarely, one watch is taken off again to see what happens.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::breaks::{Asked, Breaks};
use crate::ensemble::{Event, ServerSession, Watch};
use crate::live::LiveSession;
use crate::sync::lock;
use crate::watch_room::{Kind, Reserved};

/// How the watches of one ZooKeeper session are taken off.
pub(crate) struct Unwatching {
    breaks: Arc<Breaks>,
    /// The last watch that was taken off, until a later request has been answered.
    asked: Mutex<Option<Asked>>,
    /// The watches that nobody waits for. One for each path keeps the client from taking off
    /// the others.
    kept: Mutex<HashSet<(Kind, String)>>,
    /// Tells a watch that is kept to go.
    let_go: Notify,
}

impl Unwatching {
    pub(crate) fn new(breaks: Arc<Breaks>) -> Unwatching {
        Unwatching {
            breaks,
            asked: Mutex::default(),
            kept: Mutex::default(),
            let_go: Notify::new(),
        }
    }

    /// Notes that a request sent at `sent` was answered.
    pub(crate) fn answered(&self, sent: Duration) {
        let mut asked = lock(&self.asked);
        self.settle(&mut asked);
        if asked.as_ref().is_some_and(|asked| asked.sent() < sent) {
            asked.take().into_iter().for_each(Asked::answered);
        }
    }

    /// Takes one of the kept watches off, if it is time to see what comes of it.
    pub(crate) fn try_again(&self, pause: Duration) {
        if lock(&self.kept).is_empty() {
            return;
        }
        if self.breaks.may_try_again(pause) {
            self.let_go.notify_one();
        } else if !self.keeps() && lock(&self.asked).is_none() {
            self.let_go.notify_waiters();
        }
    }

    /// Notes that a watch is about to be taken off.
    fn asks(&self, server: &dyn ServerSession) {
        *lock(&self.asked) = Some(self.breaks.asked(server));
    }

    /// True if watches are to be kept.
    fn keeps(&self) -> bool {
        self.settle(&mut lock(&self.asked));
        self.breaks.are_too_many()
    }

    /// Counts the break, if the connection has broken.
    pub(crate) fn end(&self) {
        lock(&self.asked).take();
    }

    fn settle(&self, asked: &mut Option<Asked>) {
        if asked.as_mut().is_some_and(Asked::has_broken) {
            *asked = None;
        }
    }
}

/// A watch with its room, which it gives back when it has seen something or is dropped.
pub(crate) struct Unfired {
    live: Arc<LiveSession>,
    kind: Kind,
    path: String,
    watch: Option<Watch>,
    room: Option<Reserved>,
}

impl Unfired {
    pub(crate) fn new(
        live: &Arc<LiveSession>,
        kind: Kind,
        path: &str,
        watch: Watch,
        room: Option<Reserved>,
    ) -> Unfired {
        Unfired {
            live: live.clone(),
            kind,
            path: path.to_owned(),
            watch: Some(watch),
            room,
        }
    }

    /// Resolves when the watch has seen something.
    pub(crate) async fn event(mut self) -> Event {
        let event = match &mut self.watch {
            Some(watch) => watch.await,
            None => std::future::pending().await,
        };
        self.watch = None;
        event
    }
}

impl Drop for Unfired {
    fn drop(&mut self) {
        let Some(watch) = self.watch.take() else {
            return;
        };
        let unwatching = self.live.unwatching();
        let Ok(server) = self.live.server() else {
            return;
        };
        if !unwatching.keeps() {
            unwatching.asks(&*server);
            return;
        }
        let key = (self.kind, self.path.clone());
        if lock(&unwatching.kept).insert(key.clone()) {
            let (live, room) = (self.live.clone(), self.room.take());
            self.live.in_background(async move {
                let unwatching = live.unwatching();
                tokio::select! {
                    _ = watch => {}
                    () = unwatching.let_go.notified() => {
                        if let Ok(server) = live.server() {
                            unwatching.asks(&*server);
                        }
                    }
                }
                lock(&unwatching.kept).remove(&key);
                drop(room);
            });
        }
    }
}
