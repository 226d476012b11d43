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

impl WatchMode {
    const fn modes(self) -> Modes {
        Modes(1 << self as u8)
    }
}

/// The modes in which one client watches a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Modes(u8);

impl Modes {
    const ALL: Modes = Modes(0b111);

    fn with(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    fn without(self, other: Modes) -> Modes {
        Modes(self.0 & !other.0)
    }

    fn has(self, other: Modes) -> bool {
        self.0 & other.0 != 0
    }

    fn is_recursive(self) -> bool {
        self.has(WatchMode::Recursive.modes())
    }
}

/// The watches that a request to remove watches, or to look for them, is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    kinds: &'static [WatchKind],
    modes: Modes,
}

/// All watches, by path, kind and connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches {
    tables: BTreeMap<(String, WatchKind), BTreeMap<ConnectionId, Modes>>,
    /// The number of recursive watches.
    recursive: usize,
    /// True if a client can watch a path in several modes, as on servers since 3.9
    /// (ZOOKEEPER-4466). On older servers the last mode replaces the earlier one.
    keeps_modes_apart: bool,
}

impl Watches {
    pub(super) fn with_modes_apart(keeps_modes_apart: bool) -> Watches {
        Watches {
            keeps_modes_apart,
            ..Watches::default()
        }
    }

    pub(super) fn add(
        &mut self,
        path: &str,
        kind: WatchKind,
        connection: ConnectionId,
        mode: WatchMode,
    ) {
        let table = self.tables.entry((path.to_owned(), kind)).or_default();
        let modes = table.entry(connection).or_default();
        self.recursive -= usize::from(modes.is_recursive());
        let earlier = if self.keeps_modes_apart {
            *modes
        } else {
            Modes::default()
        };
        *modes = earlier.with(mode.modes());
        self.recursive += usize::from(modes.is_recursive());
    }

    /// Adds a watch that stays when it has fired.
    ///
    /// A recursive watch needs no watch of the children: it sees the children themselves. Servers
    /// before 3.9 set one, too.
    pub(super) fn add_persistent(&mut self, path: &str, connection: ConnectionId, mode: WatchMode) {
        self.add(path, WatchKind::Data, connection, mode);
        if mode != WatchMode::Recursive || !self.keeps_modes_apart {
            self.add(path, WatchKind::Children, connection, mode);
        }
    }

    /// The watches of this type. `None` if the server does not know the type.
    pub(super) fn of_type(&self, watcher: WatcherType) -> Option<Selection> {
        let both = &[WatchKind::Data, WatchKind::Children][..];
        let (kinds, mode) = match watcher {
            WatcherType::Data => (&both[..1], WatchMode::Once),
            WatcherType::Children => (&both[1..], WatchMode::Once),
            WatcherType::Persistent if self.keeps_modes_apart => (both, WatchMode::Persistent),
            WatcherType::PersistentRecursive if self.keeps_modes_apart => {
                (&both[..1], WatchMode::Recursive)
            }
            WatcherType::Any => {
                let modes = Modes::ALL;
                return Some(Selection { kinds: both, modes });
            }
            _ => return None,
        };
        let modes = match self.keeps_modes_apart {
            true => mode.modes(),
            false => Modes::ALL,
        };
        Some(Selection { kinds, modes })
    }

    /// True if the path has one of these watches.
    ///
    /// Servers before 3.9 do not compare the client that has set the watch with the client that
    /// asks.
    pub(super) fn contains(&self, path: &str, of: Selection, connection: ConnectionId) -> bool {
        of.kinds.iter().any(|kind| {
            let table = self.tables.get(&(path.to_owned(), *kind));
            table.is_some_and(|table| match self.keeps_modes_apart {
                true => table.get(&connection).is_some_and(|it| it.has(of.modes)),
                false => true,
            })
        })
    }

    /// Removes these watches of a client. True if there was one.
    pub(super) fn remove(&mut self, path: &str, of: Selection, connection: ConnectionId) -> bool {
        let mut found = false;
        for kind in of.kinds {
            let key = (path.to_owned(), *kind);
            let Some(table) = self.tables.get_mut(&key) else {
                continue;
            };
            let Some(modes) = table.get_mut(&connection) else {
                continue;
            };
            let earlier = *modes;
            *modes = earlier.without(of.modes);
            self.recursive -= usize::from(earlier.is_recursive() && !modes.is_recursive());
            found |= earlier != *modes;
            table.retain(|_, modes| *modes != Modes::default());
            if table.is_empty() {
                self.tables.remove(&key);
            }
        }
        found
    }

    pub(super) fn remove_connection(&mut self, connection: ConnectionId) {
        let recursive = &mut self.recursive;
        self.tables.retain(|_, table| {
            let removed = table.remove(&connection);
            *recursive -= usize::from(removed.is_some_and(Modes::is_recursive));
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
                .filter(|(_, modes)| recursive || !modes.is_recursive());
            fired.extend(seeing.map(|(connection, _)| *connection));
            table.retain(|_, modes| {
                *modes = modes.without(WatchMode::Once.modes());
                *modes != Modes::default()
            });
            if table.is_empty() {
                self.tables.remove(&key);
            }
        }
        let mut above = path;
        while recursive && self.recursive > 0 && above != "/" {
            (above, _) = split(above);
            let table = self.tables.get(&(above.to_owned(), kind));
            let covering = table.into_iter().flatten();
            let covering = covering.filter(|(_, modes)| modes.is_recursive());
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
