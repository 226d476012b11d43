//! What the machine asks and hears of watches, of one znode and of whole trees.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use zookeeper_recipes_protocol::{
    AddWatchMode, AddWatchRequest, ErrorCode, EventType, OpCode, ReadRequest, RequestBody,
    WatcherType, WatchesRequest,
};

use crate::error::RequestError;
use crate::session::machine::{MAX_WATCH_BREAKS, Machine, Phase, Recipient};
use crate::session::output::Output;
use crate::session::trees::TreeEvent;
use crate::session::watches::{ReadWatch, WatchEvent, WatchId, WatchedRead};

impl<R, W> Machine<R, W> {
    /// Sends a read that sets a watch.
    ///
    /// `watch` comes back with [`Output::Watched`], or is dropped if the read sets no watch.
    pub fn watch(
        &mut self,
        now: Duration,
        read: WatchedRead,
        path: impl Into<String>,
        caller: R,
        watch: W,
    ) -> WatchId {
        let path = path.into();
        let table = read.table();
        let is_covered = table == WatcherType::Data
            && matches!(self.phase, Phase::Up)
            && self.trees.is_set(&path);
        let request = ReadRequest::new(path, !is_covered);
        let id = self.watches.ask(&request.path, table, watch);
        let body = match read {
            WatchedRead::Data => RequestBody::GetData(request),
            WatchedRead::Exists => RequestBody::Exists(request),
            WatchedRead::Children => RequestBody::GetChildren(request),
        };
        let watch = ReadWatch {
            read,
            id: id.clone(),
            covered_over: is_covered.then_some(self.connection),
        };
        self.ask(now, body, Recipient::Caller(caller, Some(watch)));
        if table == WatcherType::Data && !is_covered {
            self.put_tree_back(now, &id.path);
        }
        id
    }

    /// Forgets a watch. If no other one needs it, the server forgets it, too.
    pub fn unwatch(&mut self, now: Duration, id: &WatchId) {
        let set = self.watches.remove(id).and_then(|watch| watch.set);
        self.remove_watch(now, &id.path, set.map(WatchedRead::table));
    }

    /// The answer to a read that may set a watch.
    ///
    /// The server may have lost a watch that only its tree has covered.
    pub(crate) fn read_answered(
        &mut self,
        now: Duration,
        ReadWatch {
            read,
            id,
            covered_over,
        }: &ReadWatch,
        error: ErrorCode,
        is_read: bool,
    ) {
        match read.kind_set(error) {
            Some(kind) if !self.watches.set(id, kind) => {
                self.remove_watch(now, &id.path, Some(kind.table()));
            }
            Some(_) if is_read => {
                let is_covered = |over| over == self.connection && self.trees.is_set(&id.path);
                if !covered_over.is_none_or(is_covered) {
                    let lost = self.watches.remove(id);
                    self.unwatched(lost.map(|watch| watch.to));
                }
            }
            _ => self.unwatch(now, id),
        }
    }

    /// Has the server forget a watch for which a caller does not wait any more, unless others do.
    ///
    /// Without a table, no watch of its own was set. A tree of the path may have lost its last reader.
    fn remove_watch(&mut self, now: Duration, path: &str, table: Option<WatcherType>) {
        // Servers before 3.9 remove all watches of the path with its recursive one, and that one
        // with others.
        let (is_needed, kind) = match (self.trees.paths.contains(path), table) {
            (true, _) => (
                self.trees.has_reader(path) || self.watches.has(path),
                WatcherType::Any,
            ),
            (false, Some(table)) => (self.watches.needs(path, table), table),
            (false, None) => return,
        };
        if is_needed {
            return;
        }
        self.trees.paths.remove(path);
        // Without a connection the server keeps no watch. One that is about to set the watch again
        // gets the removal after that.
        if matches!(self.phase, Phase::Up | Phase::Restoring { .. }) {
            let path = path.to_owned();
            let request = RequestBody::RemoveWatches(WatchesRequest { path, kind });
            self.ask(now, request, Recipient::Nobody);
        }
    }

    /// Reports to callers that their watches are not set any more.
    pub(crate) fn unwatched(&mut self, watches: impl IntoIterator<Item = W>) {
        for watch in watches {
            self.yields(Output::Watched(watch, WatchEvent::Unwatched));
        }
    }

    /// Has a server watch a znode and all znodes below it, as
    /// [`Connection::watch_tree`](crate::Connection::watch_tree).
    pub fn watch_tree(&mut self, now: Duration, path: &str) -> WatchId {
        let id = self.trees.ask(path);
        self.add_watch(now, id.path.clone());
        id
    }

    /// The next event of a watch of a tree, or why there will be none.
    ///
    /// If it is pending, the waker of `context` comes with [`Output::Wake`].
    pub fn poll_tree(
        &mut self,
        id: &WatchId,
        context: &Context<'_>,
    ) -> Poll<Result<TreeEvent, RequestError>> {
        self.trees.poll(id, context)
    }

    /// Forgets a watch of a tree. If no other one needs it, the server forgets it, too.
    pub fn unwatch_tree(&mut self, now: Duration, id: &WatchId) {
        self.trees.forget(id);
        self.remove_watch(now, &id.path, None);
    }

    /// A connection that is not up yet is asked for all trees once it is.
    fn add_watch(&mut self, now: Duration, path: Arc<str>) {
        let is_over = self.is_ended() || self.closing_until.is_some();
        if !is_over && !matches!(self.phase, Phase::Up) {
            return;
        }
        let request = AddWatchRequest {
            path: path.to_string(),
            mode: AddWatchMode::PersistentRecursive,
        };
        self.ask(now, RequestBody::AddWatch(request), Recipient::Tree(path));
    }

    /// Has the server of a new connection watch all trees that have a reader.
    ///
    /// A member of another release may close each connection at that, also if others have answered.
    pub(crate) fn add_watches(&mut self, now: Duration) {
        self.trees.unset_all();
        if self.trees.breaks >= MAX_WATCH_BREAKS {
            self.end_trees(&RequestError::Unsupported(OpCode::AddWatch));
        }
        for path in self.trees.paths.clone() {
            self.add_watch(now, path);
        }
    }

    /// A read is sent that sets a watch of data, before a tree of the same path is known to be set.
    ///
    /// On servers before 3.9 it replaces the recursive watch of the same path (ZOOKEEPER-4466). Put
    /// back, that one sends the events of both.
    pub(crate) fn put_tree_back(&mut self, now: Duration, path: &Arc<str>) {
        if self.trees.unset(path) {
            self.add_watch(now, path.clone());
        }
    }

    /// The answer to the request for a watch of a tree.
    pub(crate) fn tree_watched(&mut self, now: Duration, path: &str, error: ErrorCode) {
        self.trees.breaks = 0;
        let lost: &[WatchedRead] = match error {
            // On servers before 3.9 it has replaced the watches of the children of the same path.
            ErrorCode::Ok => {
                self.trees.set(path);
                &[WatchedRead::Children]
            }
            // Without it, nothing may cover the watches of data.
            _ => {
                self.trees.end(path, &RequestError::Refused(error));
                &[WatchedRead::Data, WatchedRead::Exists]
            }
        };
        self.wake();
        for kind in lost {
            let lost = self.watches.take_set(path, *kind);
            self.unwatched(lost);
        }
        self.remove_watch(now, path, None);
    }

    pub(crate) fn end_tree(&mut self, path: &str, reason: &RequestError) {
        self.trees.end(path, reason);
        self.wake();
    }

    pub(crate) fn end_trees(&mut self, reason: &RequestError) {
        for path in self.trees.paths.clone() {
            self.end_tree(&path, reason);
        }
    }

    /// Passes an event on, whose own watches were fired before.
    pub(crate) fn tree_event(&mut self, now: Duration, path: &str, kind: EventType) {
        self.trees.push(path, kind);
        self.wake();
        self.remove_watch(now, path, None);
    }

    fn wake(&mut self) {
        let woken = self.trees.woken.drain(..).map(Output::Wake);
        self.outputs.extend(woken);
    }
}
