//! The watches of whole trees, and the events that wait for their readers.
//!
//! A server keeps one recursive watch for each connection and path, however many readers it has. The
//! watch stays when it has fired, and ends with the connection.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use zookeeper_recipes_protocol::EventType;

use crate::error::RequestError;
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
    /// The readers of each path that a server watches, or is asked to. A path without readers is
    /// still watched.
    paths: BTreeMap<Arc<str>, Vec<u64>>,
    readers: BTreeMap<u64, Reader>,
    last_number: u64,
    /// The readers to wake.
    woken: Vec<Waker>,
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
    fn push(&mut self, event: TreeEvent, woken: &mut Vec<Waker>) {
        self.bytes += size_of::<TreeEvent>() + event.path().map_or(0, str::len);
        self.events.push_back(event);
        if self.bytes > MAX_BYTES {
            self.miss(woken);
        }
        woken.extend(self.waker.take());
    }

    /// The reader has to read all again, so it needs no earlier event.
    fn miss(&mut self, woken: &mut Vec<Waker>) {
        self.events = VecDeque::new();
        self.bytes = 0;
        self.push(TreeEvent::Missed, woken);
    }

    fn take(&mut self) -> Option<TreeEvent> {
        let event = self.events.pop_front()?;
        self.bytes -= size_of::<TreeEvent>() + event.path().map_or(0, str::len);
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
        Some(event)
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

    /// The path of the znode. `None` for [`Missed`](Self::Missed).
    pub fn path(&self) -> Option<&str> {
        match self {
            TreeEvent::Created(path) | TreeEvent::Deleted(path) | TreeEvent::DataChanged(path) => {
                Some(path)
            }
            TreeEvent::Missed => None,
        }
    }
}

impl Trees {
    /// Adds a reader, for whom a server is asked to watch the path.
    pub(crate) fn ask(&mut self, path: &str) -> WatchId {
        self.last_number += 1;
        let (path, number) = (Arc::<str>::from(path), self.last_number);
        self.readers.insert(number, Reader::default());
        self.paths.entry(path.clone()).or_default().push(number);
        WatchId { path, number }
    }

    /// Forgets a reader. False if no server watches the path for it.
    pub(crate) fn forget(&mut self, id: &WatchId) -> bool {
        self.readers.remove(&id.number);
        let numbers = self.paths.get_mut(&id.path);
        numbers.is_some_and(|numbers| {
            numbers.retain(|number| *number != id.number);
            true
        })
    }

    /// True if a server watches the tree of this path, or is asked to.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains_key(path)
    }

    pub(crate) fn has_reader(&self, path: &str) -> bool {
        self.paths.get(path).is_some_and(|it| !it.is_empty())
    }

    /// No server watches the tree of this path any more.
    pub(crate) fn forget_path(&mut self, path: &str) {
        self.paths.remove(path);
    }

    /// A server has set the watch.
    pub(crate) fn set(&mut self, path: &str) {
        for number in self.paths.get(path).into_iter().flatten() {
            let reader = self.readers.get_mut(number);
            if let Some(reader) = reader.filter(|reader| !reader.is_set) {
                reader.is_set = true;
                reader.miss(&mut self.woken);
            }
        }
    }

    /// The watch has to be set again. False if it has no reader.
    pub(crate) fn unset(&mut self, path: &str) -> bool {
        for number in self.paths.get(path).into_iter().flatten() {
            if let Some(reader) = self.readers.get_mut(number) {
                reader.is_set = false;
            }
        }
        self.has_reader(path)
    }

    /// The connection has broken, and all watches with it.
    pub(crate) fn unset_all(&mut self) {
        self.paths.retain(|_, numbers| !numbers.is_empty());
        self.readers.values_mut().for_each(|it| it.is_set = false);
    }

    pub(crate) fn paths(&self) -> Vec<Arc<str>> {
        self.paths.keys().cloned().collect()
    }

    /// The readers of this path get no further event, for this reason.
    pub(crate) fn end(&mut self, path: &str, reason: &RequestError) {
        for number in self.paths.remove(path).into_iter().flatten() {
            if let Some(reader) = self.readers.get_mut(&number) {
                reader.end = Some(reason.clone());
                self.woken.extend(reader.waker.take());
            }
        }
    }

    /// Adds an event for each reader that watches the path, or a path above it.
    pub(crate) fn push(&mut self, path: &str, kind: EventType) {
        let covers = |above: &str| {
            let below = path.strip_prefix(above.trim_end_matches('/'));
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        let covering = self.paths.iter().filter(|(above, _)| covers(above));
        for number in covering.flat_map(|(_, numbers)| numbers) {
            let reader = self.readers.get_mut(number);
            let reader = reader.filter(|reader| reader.is_set);
            if let (Some(reader), Some(event)) = (reader, TreeEvent::of(path, kind)) {
                reader.push(event, &mut self.woken);
            }
        }
    }

    /// The next event of a reader, or why there will be none.
    pub(crate) fn poll(
        &mut self,
        id: &WatchId,
        context: &Context<'_>,
    ) -> Poll<Result<TreeEvent, RequestError>> {
        let Some(reader) = self.readers.get_mut(&id.number) else {
            return Poll::Pending;
        };
        match (reader.take(), &reader.end) {
            (Some(event), _) => Poll::Ready(Ok(event)),
            (None, Some(reason)) => Poll::Ready(Err(reason.clone())),
            (None, None) => {
                reader.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn take_woken(&mut self) -> Vec<Waker> {
        mem::take(&mut self.woken)
    }
}
