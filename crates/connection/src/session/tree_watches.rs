//! What the machine asks and hears of the watches of whole trees.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use zookeeper_recipes_protocol::{
    AddWatchMode, AddWatchRequest, ErrorCode, EventType, OpCode, RequestBody, WatcherType,
};

use crate::error::RequestError;
use crate::session::machine::{MAX_WATCH_BREAKS, Machine, Output, Phase, Recipient};
use crate::session::trees::TreeEvent;
use crate::session::watches::{WatchEvent, WatchId, WatchKind};

impl<R, W> Machine<R, W> {
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
        self.remove_tree(now, &id.path);
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
        // On servers before 3.9 it has replaced the watches of the children of the same path.
        // Without it, nothing may cover the watches of data.
        let lost: &[WatchKind] = match error {
            ErrorCode::Ok => &[WatchKind::Children],
            _ => &[WatchKind::Data, WatchKind::Absent],
        };
        match error {
            ErrorCode::Ok => self.trees.set(path),
            _ => self.trees.end(path, &RequestError::Refused(error)),
        }
        self.wake();
        let lost = lost.iter();
        let lost: Vec<W> = lost
            .flat_map(|kind| self.watches.take_set(path, *kind))
            .collect();
        for watch in lost {
            self.yields(Output::Watched(watch, WatchEvent::Unwatched));
        }
        self.remove_tree(now, path);
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
        self.remove_tree(now, path);
    }

    /// Has the server forget a tree that nobody reads.
    pub(crate) fn remove_tree(&mut self, now: Duration, path: &str) {
        if self.trees.paths.contains(path) {
            self.remove_watch(now, path, WatcherType::Any);
        }
    }

    fn wake(&mut self) {
        let woken = self.trees.woken.drain(..).map(Output::Wake);
        self.outputs.extend(woken);
    }
}
