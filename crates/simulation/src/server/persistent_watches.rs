//! Watches that stay when they have seen something.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::split;
use crate::wire::connection::ConnectionId;
use crate::wire::watch_kind::WatchKind;

/// Persistent watches: at most one of each kind for a path and a connection.
#[derive(Debug, Default)]
pub(super) struct PersistentWatches {
    /// With whether the watch is recursive.
    tables: BTreeMap<(String, WatchKind), BTreeMap<ConnectionId, bool>>,
    /// How many of them are recursive.
    recursive: usize,
}

impl PersistentWatches {
    pub(super) fn add(
        &mut self,
        path: &str,
        kind: WatchKind,
        connection: ConnectionId,
        recursive: bool,
    ) {
        let table = self.tables.entry((path.to_owned(), kind)).or_default();
        let earlier = table.insert(connection, recursive);
        self.recursive += usize::from(recursive);
        self.recursive -= usize::from(earlier == Some(true));
    }

    /// Takes off a watch. Whether there was one.
    pub(super) fn remove(&mut self, path: &str, kind: WatchKind, connection: ConnectionId) -> bool {
        if self.tables.is_empty() {
            return false;
        }
        let key = (path.to_owned(), kind);
        let Some(table) = self.tables.get_mut(&key) else {
            return false;
        };
        let removed = table.remove(&connection);
        if table.is_empty() {
            self.tables.remove(&key);
        }
        self.recursive -= usize::from(removed == Some(true));
        removed.is_some()
    }

    pub(super) fn remove_connection(&mut self, connection: ConnectionId) {
        let recursive = &mut self.recursive;
        self.tables.retain(|_, table| {
            *recursive -= usize::from(table.remove(&connection) == Some(true));
            !table.is_empty()
        });
    }

    /// Whether anybody watches this path.
    pub(super) fn contains(&self, path: &str, kind: WatchKind) -> bool {
        self.tables.contains_key(&(path.to_owned(), kind))
    }

    /// Who is told of an event at this path.
    pub(super) fn told(&self, path: &str, kind: WatchKind) -> BTreeSet<ConnectionId> {
        let mut told = BTreeSet::new();
        if self.tables.is_empty() {
            return told;
        }
        if let Some(table) = self.tables.get(&(path.to_owned(), kind)) {
            told.extend(table.keys());
        }
        let mut above = path;
        while self.recursive > 0 && above != "/" {
            (above, _) = split(above);
            if let Some(table) = self.tables.get(&(above.to_owned(), kind)) {
                let recursive = table.iter().filter(|(_, recursive)| **recursive);
                told.extend(recursive.map(|(connection, _)| *connection));
            }
        }
        told
    }

    /// Who is told that the children of a znode have changed: a recursive watch hears of the
    /// children themselves instead.
    pub(super) fn told_of_children(&self, path: &str) -> BTreeSet<ConnectionId> {
        if self.tables.is_empty() {
            return BTreeSet::new();
        }
        let table = self.tables.get(&(path.to_owned(), WatchKind::Children));
        let table = table.into_iter().flatten();
        let alone = table.filter(|(_, recursive)| !**recursive);
        alone.map(|(connection, _)| *connection).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, WatchKind, ConnectionId)> {
        self.tables.iter().flat_map(|((path, kind), table)| {
            let connections = table.keys();
            connections.map(move |connection| (path.as_str(), *kind, *connection))
        })
    }
}
