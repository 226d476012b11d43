//! The watches of whole trees, and the events that wait for their readers.
//!
//! A server keeps one recursive watch for each connection and path, however many readers it has. The
//! watch stays when it has fired, and ends with the connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use zookeeper_recipes_protocol::EventType;

use crate::error::RequestError;
use crate::session::requests::take_first;
use crate::session::watches::WatchId;

/// What has happened to a watched znode, or below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEvent {
    /// The znode at this path was created.
    Created(String),
    /// The znode at this path was deleted.
    Deleted(String),
    /// The data of the znode at this path was written.
    DataChanged(String),
    /// Events may be missing: all that was read of the tree has to be read again.
    ///
    /// The watch is set, so a read that is sent from now on misses nothing.
    Missed,
}

/// How many bytes of events wait for one reader at most. Then they give way to a
/// [`TreeEvent::Missed`].
const MAX_BYTES: usize = 1 << 20;

/// All watches of trees of a session.
#[derive(Default)]
pub(crate) struct Trees {
    /// The paths that a server watches, or is asked to, also if no reader is left.
    pub(crate) paths: BTreeSet<Arc<str>>,
    readers: BTreeMap<WatchId, Reader>,
    last_number: u64,
    /// How many connections in a row the server closed when it was asked for a tree.
    pub(crate) breaks: u32,
    /// The readers to wake.
    pub(crate) woken: Vec<Waker>,
}

/// What waits for one reader.
#[derive(Default)]
struct Reader {
    /// False until a server has set the watch over the present connection.
    is_set: bool,
    events: VecDeque<TreeEvent>,
    bytes: usize,
    end: Option<RequestError>,
    waker: Option<Waker>,
}

impl Reader {
    /// Adds an event, and returns who waits for it.
    fn push(&mut self, event: TreeEvent) -> Option<Waker> {
        self.bytes += event.bytes();
        self.events.push_back(event);
        if self.bytes > MAX_BYTES {
            return self.miss();
        }
        self.waker.take()
    }

    /// The reader has to read all again, so it needs no earlier event.
    fn miss(&mut self) -> Option<Waker> {
        self.events = VecDeque::new();
        self.bytes = 0;
        self.push(TreeEvent::Missed)
    }
}

impl TreeEvent {
    fn of(path: &str, kind: EventType) -> Option<TreeEvent> {
        let event = match kind {
            EventType::NodeCreated => TreeEvent::Created,
            EventType::NodeDeleted => TreeEvent::Deleted,
            EventType::NodeDataChanged => TreeEvent::DataChanged,
            _ => return None,
        };
        Some(event(path.to_owned()))
    }

    /// The bytes that the event takes.
    fn bytes(&self) -> usize {
        size_of::<TreeEvent>()
            + match self {
                TreeEvent::Created(path)
                | TreeEvent::Deleted(path)
                | TreeEvent::DataChanged(path) => path.len(),
                TreeEvent::Missed => 0,
            }
    }
}

impl Trees {
    /// Adds a reader, for whom a server is asked to watch the path.
    pub(crate) fn ask(&mut self, path: &str) -> WatchId {
        self.last_number += 1;
        let (path, number) = (Arc::<str>::from(path), self.last_number);
        self.paths.insert(path.clone());
        let id = WatchId { path, number };
        self.readers.insert(id.clone(), Reader::default());
        id
    }

    pub(crate) fn forget(&mut self, id: &WatchId) {
        self.readers.remove(id);
    }

    /// True if somebody reads the events of this path.
    pub(crate) fn has_reader(&mut self, path: &str) -> bool {
        of(&mut self.readers, path).next().is_some()
    }

    /// True if a server has set the watch over the present connection, and somebody reads it.
    pub(crate) fn is_set(&self, path: &str) -> bool {
        let mut all = self.readers.iter();
        all.any(|(id, reader)| reader.is_set && *id.path == *path)
    }

    /// A server has set the watch.
    pub(crate) fn set(&mut self, path: &str) {
        let Trees { readers, woken, .. } = self;
        for reader in of(readers, path).filter(|reader| !reader.is_set) {
            reader.is_set = true;
            woken.extend(reader.miss());
        }
    }

    /// The watch has to be set again. False if it has no reader.
    pub(crate) fn unset(&mut self, path: &str) -> bool {
        of(&mut self.readers, path).for_each(|reader| reader.is_set = false);
        self.has_reader(path)
    }

    /// The watches ended with the last connection. Trees without a reader are forgotten.
    pub(crate) fn unset_all(&mut self) {
        for path in self.paths.clone() {
            if !self.unset(&path) {
                self.paths.remove(&path);
            }
        }
    }

    /// The readers of this path get no further event, for this reason.
    pub(crate) fn end(&mut self, path: &str, reason: &RequestError) {
        self.paths.remove(path);
        let Trees { readers, woken, .. } = self;
        for reader in of(readers, path) {
            reader.is_set = false;
            reader.end = Some(reason.clone());
            woken.extend(reader.waker.take());
        }
    }

    /// Adds an event for each reader that watches the path, or a path above it.
    pub(crate) fn push(&mut self, path: &str, kind: EventType) {
        let covers = |above: &str| {
            let below = path.strip_prefix(above.trim_end_matches('/'));
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        for (id, reader) in &mut self.readers {
            let event = TreeEvent::of(path, kind).filter(|_| reader.is_set && covers(&id.path));
            self.woken
                .extend(event.and_then(|event| reader.push(event)));
        }
    }

    /// The next event of a reader, or why there will be none.
    pub(crate) fn poll(
        &mut self,
        id: &WatchId,
        context: &Context<'_>,
    ) -> Poll<Result<TreeEvent, RequestError>> {
        let Some(reader) = self.readers.get_mut(id) else {
            return Poll::Pending;
        };
        match (take_first(&mut reader.events), &reader.end) {
            (Some(event), _) => {
                reader.bytes -= event.bytes();
                Poll::Ready(Ok(event))
            }
            (None, Some(reason)) => Poll::Ready(Err(reason.clone())),
            (None, None) => {
                reader.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The readers of this path who wait for more than an end.
fn of<'a>(
    readers: &'a mut BTreeMap<WatchId, Reader>,
    path: &str,
) -> impl Iterator<Item = &'a mut Reader> {
    let of = readers
        .iter_mut()
        .filter(move |(id, reader)| *id.path == *path && reader.end.is_none());
    of.map(|(_, reader)| reader)
}
