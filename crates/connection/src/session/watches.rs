//! The watches of a session.
//!
//! A server keeps one watch for each connection, path and [`Table`], however many callers watch the
//! path. It sends one event, and forgets the watch. So the callers of a path share its watch, and
//! each gets the event.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem;

use zookeeper_recipes_protocol::{EventType, SetWatchesRequest, WatcherType};

/// The number of a watch within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(pub(crate) u64);

/// What a watch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A change of the data, or the deletion, of a znode that was there.
    Data,
    /// The creation of a znode that was not there.
    Absent,
    /// A created or deleted child, or the deletion of the znode.
    Children,
}

/// Where the server keeps a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// [`Kind::Data`] and [`Kind::Absent`].
    Data,
    /// [`Kind::Children`].
    Children,
}

impl Kind {
    pub(crate) fn table(self) -> Table {
        match self {
            Kind::Data | Kind::Absent => Table::Data,
            Kind::Children => Table::Children,
        }
    }

    /// True if the server removes the watch when it sends this event.
    fn fires_at(self, event: EventType) -> bool {
        match event {
            EventType::NodeDeleted => true,
            EventType::NodeCreated | EventType::NodeDataChanged => self.table() == Table::Data,
            EventType::NodeChildrenChanged => self == Kind::Children,
            _ => false,
        }
    }
}

impl Table {
    pub(crate) fn watcher_type(self) -> WatcherType {
        match self {
            Table::Data => WatcherType::Data,
            Table::Children => WatcherType::Children,
        }
    }
}

/// The watches of one path.
#[derive(Debug)]
struct OfPath<W> {
    set: Vec<(WatchId, Kind, W)>,
    /// The watches whose read has no reply yet.
    asked: Vec<(WatchId, Table)>,
}

/// All watches of a session, by path.
#[derive(Debug)]
pub(crate) struct Watches<W> {
    paths: BTreeMap<String, OfPath<W>>,
    last_id: u64,
}

/// How many bytes of paths go into one request that sets watches again.
///
/// A server accepts `jute.maxbuffer` bytes, by default 1 MiB. Apache's client takes 128 KiB, too.
const MOST_BYTES: usize = 128 << 10;

impl<W> Watches<W> {
    pub(crate) fn new() -> Watches<W> {
        Watches {
            paths: BTreeMap::new(),
            last_id: 0,
        }
    }

    /// Notes that a read was sent which sets a watch.
    pub(crate) fn ask(&mut self, path: &str, table: Table) -> WatchId {
        self.last_id += 1;
        let id = WatchId(self.last_id);
        let asked = (id, table);
        match self.paths.get_mut(path) {
            Some(of_path) => of_path.asked.push(asked),
            None => {
                let of_path = OfPath {
                    set: Vec::new(),
                    asked: vec![asked],
                };
                self.paths.insert(path.to_owned(), of_path);
            }
        }
        id
    }

    /// Notes the reply to the read of a watch: which watch it has set, if any.
    ///
    /// It returns true if the server now keeps a watch that nobody waits for.
    pub(crate) fn answered(&mut self, path: &str, id: WatchId, set: Option<(Kind, W)>) -> bool {
        let Entry::Occupied(mut entry) = self.paths.entry(path.to_owned()) else {
            return set.is_some();
        };
        let of_path = entry.get_mut();
        let asked = of_path.asked.iter().position(|(asked, _)| *asked == id);
        let waited_for = asked
            .map(|place| of_path.asked.swap_remove(place))
            .is_some();
        let mut left_over = false;
        if let Some((kind, watch)) = set {
            match waited_for {
                true => of_path.set.push((id, kind, watch)),
                false => left_over = !of_path.needs(kind.table()),
            }
        }
        if of_path.is_empty() {
            entry.remove();
        }
        left_over
    }

    /// Forgets a watch that nobody waits for any more.
    ///
    /// It returns the server's table if the server keeps a watch there that nobody waits for. A watch
    /// whose read has no reply yet is removed when the reply has come.
    pub(crate) fn forget(&mut self, path: &str, id: WatchId) -> Option<Table> {
        let of_path = self.paths.get_mut(path)?;
        of_path.asked.retain(|(asked, _)| *asked != id);
        let place = of_path.set.iter().position(|(set, _, _)| *set == id);
        let table = place.map(|place| of_path.set.swap_remove(place).1.table());
        let unneeded = table.filter(|table| !of_path.needs(*table));
        if of_path.is_empty() {
            self.paths.remove(path);
        }
        unneeded
    }

    /// Takes the watches that an event fires.
    pub(crate) fn fire(&mut self, path: &str, event: EventType) -> Vec<W> {
        let Some(of_path) = self.paths.get_mut(path) else {
            return Vec::new();
        };
        let (fired, kept) = mem::take(&mut of_path.set)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, kind, _)| kind.fires_at(event));
        of_path.set = kept;
        if of_path.is_empty() {
            self.paths.remove(path);
        }
        fired.into_iter().map(|(_, _, watch)| watch).collect()
    }

    /// Takes all watches that are set, and leaves those whose read has no reply yet.
    pub(crate) fn take_set(&mut self) -> Vec<W> {
        let mut taken = Vec::new();
        self.paths.retain(|_, of_path| {
            taken.extend(of_path.set.drain(..).map(|(_, _, watch)| watch));
            !of_path.is_empty()
        });
        taken
    }

    /// The requests that set all watches again, over a new connection.
    ///
    /// The server compares each znode with `seen`, the latest zxid that the session has seen, and
    /// sends at once the events that the session has missed.
    pub(crate) fn set_again(&self, seen: i64) -> Vec<SetWatchesRequest> {
        let mut requests = Vec::new();
        let mut bytes = 0;
        for (path, of_path) in &self.paths {
            for kind in [Kind::Data, Kind::Absent, Kind::Children] {
                if !of_path.set.iter().any(|(_, set, _)| *set == kind) {
                    continue;
                }
                if requests.is_empty() || bytes + path.len() > MOST_BYTES {
                    bytes = 0;
                    requests.push(SetWatchesRequest {
                        relative_zxid: seen,
                        data_watches: Vec::new(),
                        exist_watches: Vec::new(),
                        child_watches: Vec::new(),
                    });
                }
                bytes += path.len() + size_of::<i32>();
                if let Some(request) = requests.last_mut() {
                    let paths = match kind {
                        Kind::Data => &mut request.data_watches,
                        Kind::Absent => &mut request.exist_watches,
                        Kind::Children => &mut request.child_watches,
                    };
                    paths.push(path.clone());
                }
            }
        }
        requests
    }
}

impl<W> OfPath<W> {
    /// True if a caller waits for a watch of this table, or will.
    fn needs(&self, table: Table) -> bool {
        self.set.iter().any(|(_, kind, _)| kind.table() == table)
            || self.asked.iter().any(|(_, asked)| *asked == table)
    }

    fn is_empty(&self) -> bool {
        self.set.is_empty() && self.asked.is_empty()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/watches.rs"]
mod tests;
