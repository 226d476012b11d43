//! The watches that stand on one server.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_core::ensemble::Event;

use super::tree::{Trigger, split};
use crate::wire::connection::ConnectionId;
use crate::wire::watch_kind::WatchKind;

/// One-shot watches: at most one of each kind for a path and a connection.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    tables: BTreeMap<(String, WatchKind), BTreeSet<ConnectionId>>,
}

impl Watches {
    pub(crate) fn add(&mut self, path: &str, kind: WatchKind, connection: ConnectionId) {
        self.tables
            .entry((path.to_owned(), kind))
            .or_default()
            .insert(connection);
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
        let watching = self.take(path, WatchKind::Data);
        notified.extend(watching.iter().map(|it| (*it, path.to_owned(), event)));
        if trigger == Trigger::Deleted {
            let listing = self.take(path, WatchKind::Children);
            // Who has been told through the other table is not told twice.
            let untold = listing.difference(&watching);
            notified.extend(untold.map(|it| (*it, path.to_owned(), event)));
        }
        if trigger != Trigger::DataChanged {
            let (parent, _) = split(path);
            let listing = self.take(parent, WatchKind::Children);
            notified.extend(
                listing
                    .iter()
                    .map(|it| (*it, parent.to_owned(), Event::ChildrenChanged)),
            );
        }
        notified
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, WatchKind, ConnectionId)> {
        self.tables.iter().flat_map(|((path, kind), connections)| {
            connections
                .iter()
                .map(move |connection| (path.as_str(), *kind, *connection))
        })
    }

    fn take(&mut self, path: &str, kind: WatchKind) -> BTreeSet<ConnectionId> {
        self.tables
            .remove(&(path.to_owned(), kind))
            .unwrap_or_default()
    }
}
