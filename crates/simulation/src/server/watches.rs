//! The watches that stand on one server.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_core::ensemble::Event;

use super::persistent_watches::PersistentWatches;
use super::tree::{Trigger, split};
use crate::wire::connection::ConnectionId;
use crate::wire::watch_kind::WatchKind;

/// All watches: at most one of each kind for a path and a connection. A persistent watch and one
/// that fires once take each other's place, as in the servers before 3.9 (ZOOKEEPER-4466).
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// The watches that fire once.
    tables: BTreeMap<(String, WatchKind), BTreeSet<ConnectionId>>,
    persistent: PersistentWatches,
}

impl Watches {
    pub(crate) fn add(&mut self, path: &str, kind: WatchKind, connection: ConnectionId) {
        self.persistent.remove(path, kind, connection);
        self.tables
            .entry((path.to_owned(), kind))
            .or_default()
            .insert(connection);
    }

    /// Adds a watch of both kinds that stays when it has seen something.
    pub(crate) fn add_persistent(&mut self, path: &str, connection: ConnectionId, recursive: bool) {
        for kind in [WatchKind::Data, WatchKind::Children] {
            self.remove(path, Some(kind), connection);
            self.persistent.add(path, kind, connection, recursive);
        }
    }

    /// True if a watch of this kind stands on the path. Without a kind, a watch of either counts.
    ///
    /// Any client may have set the watch: Apache's server does not compare it with the client that
    /// asks.
    pub(crate) fn contains(&self, path: &str, kind: Option<WatchKind>) -> bool {
        [WatchKind::Data, WatchKind::Children]
            .into_iter()
            .filter(|each| kind.is_none_or(|kind| kind == *each))
            .any(|each| {
                self.tables.contains_key(&(path.to_owned(), each))
                    || self.persistent.contains(path, each)
            })
    }

    /// Takes off a watch, or with no kind both. Whether there was one.
    pub(crate) fn remove(
        &mut self,
        path: &str,
        kind: Option<WatchKind>,
        connection: ConnectionId,
    ) -> bool {
        let mut found = false;
        for each in [WatchKind::Data, WatchKind::Children] {
            if kind.is_some_and(|kind| kind != each) {
                continue;
            }
            found |= self.persistent.remove(path, each, connection);
            let key = (path.to_owned(), each);
            if let Some(connections) = self.tables.get_mut(&key) {
                found |= connections.remove(&connection);
                if connections.is_empty() {
                    self.tables.remove(&key);
                }
            }
        }
        found
    }

    pub(crate) fn remove_connection(&mut self, connection: ConnectionId) {
        self.persistent.remove_connection(connection);
        self.tables.retain(|_, connections| {
            connections.remove(&connection);
            !connections.is_empty()
        });
    }

    /// Takes off the watches that this sees, and tells whom to notify of what, in order.
    pub(crate) fn trigger(
        &mut self,
        path: &str,
        trigger: Trigger,
    ) -> Vec<(ConnectionId, String, Event)> {
        let mut notified = Vec::new();
        let event = match trigger {
            Trigger::Created => Event::Created,
            Trigger::Deleted => Event::Deleted,
            Trigger::DataChanged => Event::DataChanged,
        };
        let mut watching = self.take(path, WatchKind::Data);
        watching.extend(self.persistent.told(path, WatchKind::Data));
        notified.extend(watching.iter().map(|it| (*it, path.to_owned(), event)));
        if trigger == Trigger::Deleted {
            let mut listing = self.take(path, WatchKind::Children);
            listing.extend(self.persistent.told(path, WatchKind::Children));
            // Who has been told through the other table is not told twice.
            let untold = listing.difference(&watching);
            notified.extend(untold.map(|it| (*it, path.to_owned(), event)));
        }
        if trigger != Trigger::DataChanged {
            let (parent, _) = split(path);
            let mut listing = self.take(parent, WatchKind::Children);
            listing.extend(self.persistent.told_of_children(parent));
            notified.extend(
                listing
                    .iter()
                    .map(|it| (*it, parent.to_owned(), Event::ChildrenChanged)),
            );
        }
        notified
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, WatchKind, ConnectionId)> {
        let once = self.tables.iter().flat_map(|((path, kind), connections)| {
            connections
                .iter()
                .map(move |connection| (path.as_str(), *kind, *connection))
        });
        once.chain(self.persistent.iter())
    }

    fn take(&mut self, path: &str, kind: WatchKind) -> BTreeSet<ConnectionId> {
        self.tables
            .remove(&(path.to_owned(), kind))
            .unwrap_or_default()
    }
}
