//! The watches of a session.
//!
//! A server keeps one watch for each connection, path and table, however many callers watch the
//! path. It sends one event, and forgets the watch. So the callers of a path share its watch, and
//! each gets the event.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use zookeeper_recipes_protocol::{ErrorCode, EventType, SetWatchesRequest, WatcherType};

/// A watch of a session. Clones share the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId {
    pub(crate) path: Arc<str>,
    /// The number of the watch among those of its kind and session.
    pub(crate) number: u64,
}

/// The kind of a read that sets a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchedRead {
    /// `getData`, which sets no watch if the znode does not exist.
    Data,
    /// `exists`, which waits for the creation if the znode does not exist.
    Exists,
    /// `getChildren`, which sets no watch if the znode does not exist.
    Children,
}

impl WatchedRead {
    /// True if the read set a watch, by the error code of its reply.
    pub fn sets_watch(self, error: ErrorCode) -> bool {
        self.kind_set(error).is_some()
    }

    /// Where the server keeps the watch.
    pub(crate) fn table(self) -> WatcherType {
        match self {
            WatchedRead::Data | WatchedRead::Exists => WatcherType::Data,
            WatchedRead::Children => WatcherType::Children,
        }
    }

    /// The kind of the watch that the read set, by the error code of its reply.
    ///
    /// An `exists` that finds the znode sets the same watch as `getData`.
    pub(crate) fn kind_set(self, error: ErrorCode) -> Option<WatchedRead> {
        match (self, error) {
            (WatchedRead::Data | WatchedRead::Exists, ErrorCode::Ok) => Some(WatchedRead::Data),
            (WatchedRead::Exists, ErrorCode::NoNode) => Some(WatchedRead::Exists),
            (WatchedRead::Children, ErrorCode::Ok) => Some(WatchedRead::Children),
            _ => None,
        }
    }

    /// True if the server removes a watch of this kind when it sends this event.
    fn fires_at(self, event: EventType) -> bool {
        match event {
            EventType::NodeDeleted => true,
            EventType::NodeCreated | EventType::NodeDataChanged => self != WatchedRead::Children,
            EventType::NodeChildrenChanged => self == WatchedRead::Children,
            _ => false,
        }
    }
}

/// The watch that a read may set.
pub(crate) struct ReadWatch {
    pub(crate) read: WatchedRead,
    pub(crate) id: WatchId,
    /// The number of the connection whose recursive watch of the path has the events, too. The read
    /// sets no watch at the server then.
    pub(crate) covered_over: Option<u64>,
}

/// How a watch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The event of the watch.
    Fired(EventType),
    /// The watch is not set any more, and has seen no event.
    ///
    /// Either the session is over, or three connections in a row broke when its watches were set
    /// again, and the caller has to read anew.
    Unwatched,
}

/// A watch that a caller waits for.
pub(crate) struct Watch<W> {
    number: u64,
    table: WatcherType,
    /// The kind that is set. `None` until the read has its reply.
    pub(crate) set: Option<WatchedRead>,
    pub(crate) to: W,
}

/// All watches of a session, by path.
pub(crate) struct Watches<W> {
    paths: BTreeMap<Arc<str>, Vec<Watch<W>>>,
    last_number: u64,
}

/// How many bytes of paths go into one request that sets watches again.
///
/// A server accepts `jute.maxbuffer` bytes, by default 1 MiB. Apache's client takes 128 KiB, too.
const MAX_PATH_BYTES: usize = 128 << 10;

impl<W> Watches<W> {
    pub(crate) fn new() -> Watches<W> {
        Watches {
            paths: BTreeMap::new(),
            last_number: 0,
        }
    }

    /// Notes that a read was sent which sets a watch.
    pub(crate) fn ask(&mut self, path: &str, table: WatcherType, to: W) -> WatchId {
        self.last_number += 1;
        let number = self.last_number;
        let watch = Watch {
            number,
            table,
            set: None,
            to,
        };
        let path = match self.paths.get_key_value(path) {
            Some((path, _)) => path.clone(),
            None => path.into(),
        };
        let of_path = self.paths.entry(path.clone());
        of_path.or_insert_with(|| Vec::with_capacity(1)).push(watch);
        WatchId { path, number }
    }

    /// Notes the reply to the read of a watch, which has set it. False if nobody waits for it now.
    pub(crate) fn set(&mut self, id: &WatchId, kind: WatchedRead) -> bool {
        let mut watches = self.paths.get_mut(&id.path).into_iter().flatten();
        let watch = watches.find(|watch| watch.number == id.number);
        watch.map(|watch| watch.set = Some(kind)).is_some()
    }

    /// True if a caller waits for a watch of this path and table, or will.
    pub(crate) fn needs(&self, path: &str, table: WatcherType) -> bool {
        let mut watches = self.paths.get(path).into_iter().flatten();
        watches.any(|watch| watch.table == table)
    }

    /// True if a caller waits for a watch of this path, or will.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains_key(path)
    }

    /// Takes the watches that an event fires.
    pub(crate) fn fire(&mut self, path: &str, event: EventType) -> Vec<W> {
        let fires = |watch: &Watch<W>| watch.set.is_some_and(|kind| kind.fires_at(event));
        let fired = self.take(path, fires);
        fired.into_iter().map(|watch| watch.to).collect()
    }

    /// Takes the watches of a path for which this is so.
    fn take(&mut self, path: &str, is_so: impl Fn(&Watch<W>) -> bool) -> Vec<Watch<W>> {
        let Some(watches) = self.paths.get_mut(path) else {
            return Vec::new();
        };
        let (taken, kept) = mem::take(watches).into_iter().partition(is_so);
        *watches = kept;
        if watches.is_empty() {
            self.paths.remove(path);
        }
        taken
    }

    /// Takes this watch.
    pub(crate) fn remove(&mut self, id: &WatchId) -> Option<Watch<W>> {
        self.take(&id.path, |watch| watch.number == id.number).pop()
    }

    /// Takes the watches of a path and kind that are set.
    pub(crate) fn take_set(&mut self, path: &str, kind: WatchedRead) -> Vec<W> {
        let taken = self.take(path, |watch| watch.set == Some(kind));
        taken.into_iter().map(|watch| watch.to).collect()
    }

    /// Takes all watches that are set, and leaves those whose read has no reply yet.
    pub(crate) fn take_all_set(&mut self) -> Vec<W> {
        let paths: Vec<Arc<str>> = self.paths.keys().cloned().collect();
        let taken = paths.iter();
        let taken = taken.flat_map(|path| self.take(path, |watch| watch.set.is_some()));
        taken.map(|watch| watch.to).collect()
    }

    /// The requests that set all watches again, over a new connection.
    ///
    /// The server compares each znode with `seen`, the latest zxid that the session has seen, and
    /// sends at once the events that the session has missed.
    pub(crate) fn set_again(&self, seen: i64) -> Vec<SetWatchesRequest> {
        let mut requests = Vec::new();
        let mut bytes = 0;
        for (path, watches) in &self.paths {
            for kind in [
                WatchedRead::Data,
                WatchedRead::Exists,
                WatchedRead::Children,
            ] {
                if !watches.iter().any(|watch| watch.set == Some(kind)) {
                    continue;
                }
                if requests.is_empty() || bytes + path.len() > MAX_PATH_BYTES {
                    bytes = 0;
                    requests.push(SetWatchesRequest {
                        relative_zxid: seen,
                        ..SetWatchesRequest::default()
                    });
                }
                bytes += path.len() + size_of::<i32>();
                if let Some(request) = requests.last_mut() {
                    let paths = match kind {
                        WatchedRead::Data => &mut request.data_watches,
                        WatchedRead::Exists => &mut request.exist_watches,
                        WatchedRead::Children => &mut request.child_watches,
                    };
                    paths.push(path.to_string());
                }
            }
        }
        requests
    }
}

#[cfg(test)]
#[path = "../../tests/unit/watches.rs"]
mod tests;
