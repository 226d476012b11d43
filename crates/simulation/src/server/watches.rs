//! The watches on one server.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_protocol::{EventType, WatcherType};

use super::tree::split;
use crate::wire::network::ConnectionId;

/// The kind of change that a watch reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchKind {
    /// Set by a get or an exists: reports that a znode is created, changed or deleted.
    Data,
    /// Set by a list: reports that a znode's children change, or that the znode is deleted.
    Children,
}

/// How long a watch lasts, and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchMode {
    /// It fires once.
    Once,
    /// It stays when it has fired.
    Persistent,
    /// It stays, and also covers the znodes below its path.
    Recursive,
}

/// All watches: at most one of each kind for a path and a connection.
///
/// A persistent watch and one that fires once replace each other, as in the servers before 3.9
/// (ZOOKEEPER-4466).
#[derive(Debug, Default)]
pub(crate) struct Watches {
    tables: BTreeMap<(String, WatchKind), BTreeMap<ConnectionId, WatchMode>>,
    /// The number of recursive watches.
    recursive: usize,
}

impl Watches {
    pub(super) fn add(
        &mut self,
        path: &str,
        kind: WatchKind,
        connection: ConnectionId,
        mode: WatchMode,
    ) {
        let table = self.tables.entry((path.to_owned(), kind)).or_default();
        let earlier = table.insert(connection, mode);
        self.recursive += usize::from(mode == WatchMode::Recursive);
        self.recursive -= usize::from(earlier == Some(WatchMode::Recursive));
    }

    /// Adds a watch of both kinds that stays when it has fired.
    pub(super) fn add_persistent(&mut self, path: &str, connection: ConnectionId, mode: WatchMode) {
        for kind in [WatchKind::Data, WatchKind::Children] {
            self.add(path, kind, connection, mode);
        }
    }

    /// True if the path has a watch of these kinds.
    ///
    /// Any client may have set the watch: Apache's server does not compare it with the client that
    /// asks.
    pub(super) fn contains(&self, path: &str, kinds: &[WatchKind]) -> bool {
        let mut keys = kinds.iter().map(|kind| (path.to_owned(), *kind));
        keys.any(|key| self.tables.contains_key(&key))
    }

    /// Removes a client's watches of these kinds. True if there was one.
    pub(super) fn remove(
        &mut self,
        path: &str,
        kinds: &[WatchKind],
        connection: ConnectionId,
    ) -> bool {
        let mut found = false;
        for kind in kinds {
            let key = (path.to_owned(), *kind);
            let Some(table) = self.tables.get_mut(&key) else {
                continue;
            };
            let removed = table.remove(&connection);
            if table.is_empty() {
                self.tables.remove(&key);
            }
            self.recursive -= usize::from(removed == Some(WatchMode::Recursive));
            found |= removed.is_some();
        }
        found
    }

    pub(super) fn remove_connection(&mut self, connection: ConnectionId) {
        let recursive = &mut self.recursive;
        self.tables.retain(|_, table| {
            let removed = table.remove(&connection);
            *recursive -= usize::from(removed == Some(WatchMode::Recursive));
            !table.is_empty()
        });
    }

    /// Fires the watches that see this, and returns the notifications in order.
    pub(super) fn trigger(
        &mut self,
        path: &str,
        event: EventType,
    ) -> Vec<(ConnectionId, String, EventType)> {
        let mut at_path: Vec<ConnectionId> = Vec::from_iter(self.fire(path, WatchKind::Data, true));
        if event == EventType::NodeDeleted {
            // A client that watches both the data and the children gets one notification.
            let mut listing = self.fire(path, WatchKind::Children, true);
            listing.retain(|connection| !at_path.contains(connection));
            at_path.extend(listing);
        }
        let at_path = at_path.into_iter();
        let mut notifications: Vec<_> = at_path.map(|it| (it, path.to_owned(), event)).collect();
        if event != EventType::NodeDataChanged {
            let (parent, _) = split(path);
            // A recursive watch sees the children themselves instead.
            let listing = self.fire(parent, WatchKind::Children, false).into_iter();
            let event = EventType::NodeChildrenChanged;
            notifications.extend(listing.map(|it| (it, parent.to_owned(), event)));
        }
        notifications
    }

    /// The clients whose watches see an event at this path. Watches that fire once are removed.
    fn fire(&mut self, path: &str, kind: WatchKind, recursive: bool) -> BTreeSet<ConnectionId> {
        let mut fired = BTreeSet::new();
        let key = (path.to_owned(), kind);
        if let Some(table) = self.tables.get_mut(&key) {
            let seeing = table
                .iter()
                .filter(|(_, mode)| recursive || **mode != WatchMode::Recursive);
            fired.extend(seeing.map(|(connection, _)| *connection));
            table.retain(|_, mode| *mode != WatchMode::Once);
            if table.is_empty() {
                self.tables.remove(&key);
            }
        }
        let mut above = path;
        while recursive && self.recursive > 0 && above != "/" {
            (above, _) = split(above);
            let table = self.tables.get(&(above.to_owned(), kind));
            let covering = table.into_iter().flatten();
            let covering = covering.filter(|(_, mode)| **mode == WatchMode::Recursive);
            fired.extend(covering.map(|(connection, _)| *connection));
        }
        fired
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, WatchKind, ConnectionId)> {
        self.tables.iter().flat_map(|((path, kind), table)| {
            let connections = table.keys();
            connections.map(move |connection| (path.as_str(), *kind, *connection))
        })
    }
}

/// The kinds of watch that a request is about. `None` if servers before 3.9 do not know its type.
pub(super) fn kinds_of(request: WatcherType) -> Option<&'static [WatchKind]> {
    match request {
        WatcherType::Data => Some(&[WatchKind::Data]),
        WatcherType::Children => Some(&[WatchKind::Children]),
        WatcherType::Any => Some(&[WatchKind::Data, WatchKind::Children]),
        _ => None,
    }
}
