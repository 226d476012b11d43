//! Follows a tree of znodes: reads all of it once, and then what has changed.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::ensemble::{ServerSession, TreeWatch};
use zookeeper_recipes_core::{Error, ServerError, Session};

use crate::changes::Changes;
use crate::edges::EdgeKey;
use crate::mirror::Mirror;
use crate::overview::{Overview, Root};
use crate::reader::{Reader, answered};
use crate::walk::Walk;

/// After so long all is read again: no event says that the rights to a znode have changed.
const WHOLE: Duration = Duration::from_secs(10 * 60);

/// How long the events of a pause wait, so that a wake-up notes many of them.
///
/// The session keeps [1 MiB](TreeWatch::next) of events until they are noted.
const BATCH: Duration = Duration::from_millis(50);

/// How often changed znodes are read again that change while they are read.
const ROUNDS: usize = 8;

/// The overviews of a tree, one after the other.
#[derive(Debug)]
pub(crate) struct Follower {
    session: Session,
    root: Root,
    /// What is known by the present ZooKeeper session.
    present: Option<Present>,
    /// True if a session has ended as it asked for the watch.
    has_cost_a_session: bool,
}

impl Follower {
    pub(crate) fn new(session: &Session, root: Root) -> Follower {
        Follower {
            session: session.clone(),
            root,
            present: None,
            has_cost_a_session: false,
        }
    }

    /// Looks at what has changed since the last call, or at all if that is not known.
    pub(crate) async fn look(&mut self) -> Result<Arc<Overview>, Error> {
        loop {
            let present = match &mut self.present {
                Some(present) => present,
                none => {
                    let server = self.root.server(&self.session).await?;
                    none.insert(Present::new(server, self.root.as_str()))
                }
            };
            // Another request for the watch could end this session, too, and all holds in it.
            let asks_again = !self.has_cost_a_session;
            match present.look(asks_again).await {
                Err(ServerError::SessionOver(_)) => {
                    self.has_cost_a_session |= present.events.is_asked_for;
                    self.present = None;
                }
                looked => {
                    let id = present.server.id;
                    return looked.map_err(|error| Error::at(self.root.as_str(), id, error));
                }
            }
        }
    }

    /// Waits, and notes what changes meanwhile.
    pub(crate) async fn pause(&mut self, pause: Duration) {
        match &mut self.present {
            Some(present) => present.events.pause(pause).await,
            None => sleep(pause).await,
        }
    }

    /// True if a watch reports the changes.
    pub(crate) fn is_watched(&self) -> bool {
        let present = self.present.as_ref();
        present.is_some_and(|present| present.events.watch.is_some())
    }
}

/// A tree, as one ZooKeeper session reads it.
#[derive(Debug)]
struct Present {
    server: Arc<ServerSession>,
    reader: Reader,
    path: String,
    events: Events,
    mirror: Mirror,
    confirmed: HashSet<EdgeKey>,
    /// When the watch was asked for last.
    asked_at: Instant,
    /// When all was read last, and the number of the connection then.
    read_at: Instant,
    over: Option<u64>,
    last: Option<Arc<Overview>>,
}

/// The watch, and what it has reported.
#[derive(Debug, Default)]
struct Events {
    /// `None` if the server has no such watches.
    watch: Option<TreeWatch>,
    /// True if a watch has ended, so that another one may be set.
    has_ended: bool,
    /// True from the request for a watch until its answer.
    is_asked_for: bool,
    changes: Changes,
}

impl Present {
    fn new(server: Arc<ServerSession>, path: &str) -> Present {
        Present {
            reader: Reader::new(server.clone()),
            server,
            path: path.to_owned(),
            events: Events::default(),
            mirror: Mirror::of(path, Walk::default()),
            confirmed: HashSet::new(),
            asked_at: Instant::now(),
            read_at: Instant::now(),
            over: None,
            last: None,
        }
    }

    /// With `asks_again`, a watch that was refused is asked for again after some time.
    async fn look(&mut self, asks_again: bool) -> Result<Arc<Overview>, ServerError> {
        let is_first = self.last.is_none();
        let is_old = self.read_at.elapsed() >= WHOLE;
        let has_ended = std::mem::take(&mut self.events.has_ended);
        // Without a watch, all is read again and again.
        let is_due = asks_again && self.asked_at.elapsed() >= WHOLE;
        let is_asked_for = self.events.watch.is_none() && (is_first || has_ended || is_due);
        if is_asked_for {
            self.asked_at = Instant::now();
            self.events.is_asked_for = true;
            self.events.watch = watch(&self.server, &self.path).await?;
            self.events.is_asked_for = false;
        }
        let is_unknown = self.events.watch.is_none() || self.events.changes.is_missed();
        // What was read before a watch is set may have changed in between.
        let mut is_whole = is_first || is_old || is_asked_for || is_unknown;
        if !is_whole {
            let sync = self.reader.sync(&self.path);
            self.events.while_noting(sync).await?;
        }
        let mut has_changed = false;
        for _ in 0..ROUNDS {
            is_whole |= self.is_cut();
            if is_whole {
                self.read_all().await?;
            }
            has_changed = self.read_changes().await?;
            if !self.is_cut() {
                break;
            }
        }
        let last = self.last.take().filter(|_| !is_whole && !has_changed);
        let overview = match last {
            Some(last) => last,
            None => {
                let mirror = &mut self.mirror;
                let overview =
                    Overview::of_mirror(&self.reader, mirror, &self.path, &mut self.confirmed);
                Arc::new(self.events.while_noting(overview).await?)
            }
        };
        self.last = Some(overview.clone());
        Ok(overview)
    }

    /// True if changes may have no event since all was read.
    ///
    /// A reply over another connection can come before the watch is set there.
    fn is_cut(&self) -> bool {
        let is_watched = self.events.watch.is_some();
        self.events.changes.is_missed() || is_watched && self.server.connection() != self.over
    }

    async fn read_all(&mut self) -> Result<(), ServerError> {
        self.last = None;
        self.over = self.server.connection();
        self.events.note_all();
        self.events.changes = Changes::default();
        let read = async {
            self.reader.sync(&self.path).await?;
            Walk::below(&self.reader, &self.path).await
        };
        let walk = self.events.while_noting(read).await?;
        self.mirror = Mirror::of(&self.path, walk);
        self.read_at = Instant::now();
        Ok(())
    }

    /// Reads what has changed. False if nothing has.
    async fn read_changes(&mut self) -> Result<bool, ServerError> {
        let mut changes = self.events.changes.take();
        let has_changed = !changes.is_empty();
        for round in 1..=ROUNDS {
            if changes.is_empty() {
                break;
            }
            let found = self.mirror.find(&self.reader, &changes);
            let found = match self.events.while_noting(found).await {
                Ok(found) => found,
                Err(error) => {
                    self.events.changes.put_back(changes);
                    return Err(error);
                }
            };
            let later = &self.events.changes;
            let is_moved = |directory: &str| later.has_created(directory);
            let again = self.mirror.apply(changes, found, is_moved, round == ROUNDS);
            changes = self.events.changes.take_after(again);
        }
        for (directory, name) in self.mirror.unread_members() {
            self.events.changes.want(&directory, &name);
        }
        Ok(has_changed)
    }
}

impl Events {
    /// Waits, and notes the events of the meantime, many at once.
    async fn pause(&mut self, pause: Duration) {
        let mut pause = pin!(sleep(pause));
        loop {
            tokio::select! {
                biased;
                () = &mut pause => break,
                () = self.note_next() => {}
            }
            // Each wake-up takes processor time from the contenders on this machine.
            tokio::select! {
                biased;
                () = &mut pause => break,
                () = sleep(BATCH) => self.note_all(),
            }
        }
        self.note_all();
    }

    /// Does this work, and notes all events that come before its end.
    async fn while_noting<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        let done = loop {
            tokio::select! {
                biased;
                () = self.note_next() => {}
                done = &mut work => break done,
            }
        };
        // An event comes before the reply that shows the change.
        self.note_all();
        done
    }

    /// Notes the events that have come.
    fn note_all(&mut self) {
        while self.watch.is_some() && self.note_next().now_or_never().is_some() {}
    }

    /// Never returns if there is no watch.
    async fn note_next(&mut self) {
        let Some(watch) = &mut self.watch else {
            return std::future::pending().await;
        };
        match watch.next().await {
            Some(event) => self.changes.note(event),
            None => {
                self.watch = None;
                self.has_ended = true;
                self.changes = Changes::unknown();
            }
        }
    }
}

/// Watches a tree. `None` if the server has no such watches.
async fn watch(server: &ServerSession, path: &str) -> Result<Option<TreeWatch>, ServerError> {
    match answered(|| server.watch_tree(path)).await {
        Ok(watch) => Ok(Some(watch)),
        Err(ServerError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
