//! Removes watches that are dropped before they have fired.
//!
//! The client library removes such a watch from the server. If this request breaks the connection
//! three times in a row, the session keeps its watches until they fire. Connections also break for
//! other reasons. So the session removes one watch as a trial from time to time. The pause between
//! two trials grows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::server::ensemble::{Event, ServerSession, Watch};
use crate::server::error::SessionEnd;
use crate::session::breaks::{Asked, Breaks};
use crate::session::live::{Attachment, LiveSession};
use crate::sync::lock;
use crate::watch::budget::{Kind, Reserved};

/// The removal of watches in one ZooKeeper session.
pub(crate) struct Unwatching {
    breaks: Arc<Breaks>,
    /// The last removal of a watch, until a later request was answered.
    asked: Mutex<Option<Asked>>,
    /// The number of watchers of each path. The client removes a watch with its last watcher.
    watching: Mutex<HashMap<Watched, usize>>,
    /// The number of watches that are kept without a watcher.
    kept: AtomicUsize,
    /// Wakes a kept watch to be removed.
    let_go: Notify,
}

/// A watched path. The watch is on the children or on the znode itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watched {
    path: Arc<str>,
    children: bool,
}

impl Attachment for Unwatching {
    fn attach(live: &LiveSession) -> Unwatching {
        Unwatching {
            breaks: live.unsupported().unwatching.clone(),
            asked: Mutex::default(),
            watching: Mutex::default(),
            kept: AtomicUsize::new(0),
            let_go: Notify::new(),
        }
    }

    fn answered(&self, sent: Duration) {
        let mut asked = lock(&self.asked);
        self.settle(&mut asked);
        if asked.as_ref().is_some_and(|asked| asked.sent() < sent) {
            asked.take().into_iter().for_each(Asked::answered);
        }
    }

    /// Removes one kept watch if a trial is due.
    ///
    /// Removes all kept watches after a trial that has broken no connection.
    fn tick(&self, live: &Arc<LiveSession>, _server: &Arc<dyn ServerSession>) {
        if self.kept.load(Ordering::Relaxed) == 0 {
            return;
        }
        if self.breaks.may_try_again(live.timeout()) {
            self.let_go.notify_one();
        } else if !self.keeps() && lock(&self.asked).is_none() {
            self.let_go.notify_waiters();
        }
    }

    /// Counts the break if the connection has broken since the last removal.
    fn ended(&self, _end: SessionEnd) {
        lock(&self.asked).take();
    }
}

impl Unwatching {
    /// Notes that the client is about to remove a watch.
    fn asks(&self, server: &dyn ServerSession) {
        *lock(&self.asked) = Some(self.breaks.asked(server));
    }

    /// True if watches must be kept until they fire.
    fn keeps(&self) -> bool {
        self.settle(&mut lock(&self.asked));
        self.breaks.are_too_many()
    }

    fn settle(&self, asked: &mut Option<Asked>) {
        if asked.as_mut().is_some_and(Asked::has_broken) {
            *asked = None;
        }
    }

    fn is_last(&self, watched: &Watched) -> bool {
        lock(&self.watching).get(watched) == Some(&1)
    }
}

/// A watch that has not fired. It gives its budget back when it fires or is dropped.
pub(crate) struct Unfired {
    watch: Option<Watch>,
    place: Option<Place>,
}

/// The budget and the count that a watch takes in its session.
struct Place {
    live: Arc<LiveSession>,
    unwatching: Arc<Unwatching>,
    watched: Watched,
    _room: Option<Reserved>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut watching = lock(&self.unwatching.watching);
        if let Some(watchers) = watching.get_mut(&self.watched) {
            *watchers -= 1;
            if *watchers == 0 {
                watching.remove(&self.watched);
            }
        }
    }
}

impl Unfired {
    pub(crate) fn new(
        live: &Arc<LiveSession>,
        kind: Kind,
        path: &str,
        watch: Watch,
        room: Option<Reserved>,
    ) -> Unfired {
        let watched = Watched {
            path: path.into(),
            children: kind == Kind::Children,
        };
        let unwatching = live.attached::<Unwatching>();
        *lock(&unwatching.watching)
            .entry(watched.clone())
            .or_default() += 1;
        Unfired {
            watch: Some(watch),
            place: Some(Place {
                live: live.clone(),
                unwatching,
                watched,
                _room: room,
            }),
        }
    }

    /// Resolves when the watch fires.
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
        let (Some(watch), Some(place)) = (self.watch.take(), self.place.take()) else {
            return;
        };
        let live = place.live.clone();
        let unwatching = place.unwatching.clone();
        let Ok(server) = live.server() else {
            return;
        };
        if !unwatching.is_last(&place.watched) {
            return;
        }
        if unwatching.keeps() {
            live.in_background(keep(watch, place));
        } else {
            unwatching.asks(&*server);
        }
    }
}

/// Keeps a watch until it fires or is woken to be removed.
async fn keep(watch: Watch, place: Place) {
    let unwatching = &*place.unwatching;
    let _kept = Kept::new(&unwatching.kept);
    tokio::select! {
        _ = watch => {}
        () = unwatching.let_go.notified() => {
            // The path may have got other watchers, and then the client removes no watch.
            match place.live.server() {
                Ok(server) if unwatching.is_last(&place.watched) => unwatching.asks(&*server),
                _ => {}
            }
        }
    }
}

/// Counts a kept watch until it is dropped.
struct Kept<'a>(&'a AtomicUsize);

impl Kept<'_> {
    fn new(number: &AtomicUsize) -> Kept<'_> {
        number.fetch_add(1, Ordering::Relaxed);
        Kept(number)
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
