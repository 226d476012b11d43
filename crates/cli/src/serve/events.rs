//! Server-sent events: the overview, and then what each look has changed.

use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt, unfold};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

use super::snapshot::Snapshot;

/// The pause after which a stream without news shows that it lives. A proxy closes a silent one.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The parts of an event.
type Event = Box<dyn Iterator<Item = String> + Send>;

/// A client of the stream, and what it was sent.
pub(super) struct Listener {
    pub(super) snapshots: watch::Receiver<Arc<Snapshot>>,
    /// True when the program ends.
    pub(super) ending: watch::Receiver<bool>,
    /// One of the streams that there may be.
    pub(super) _permit: OwnedSemaphorePermit,
    pub(super) last: Option<Arc<Snapshot>>,
}

impl Listener {
    /// A client that reads late is sent the newest look only, with all changes since its last one.
    pub(super) fn events(self) -> impl Stream<Item = String> + Send + 'static {
        let events = unfold(self, async |mut listener| {
            let event = listener.next().await?;
            Some((event, listener))
        });
        events.flat_map(stream::iter)
    }

    /// `None` if the program ends.
    async fn next(&mut self) -> Option<Event> {
        if self.last.is_some() {
            tokio::select! {
                biased;
                _ = self.ending.wait_for(|ends| *ends) => return None,
                changed = self.snapshots.changed() => changed.ok()?,
                () = sleep(HEARTBEAT) => return Some(Box::new(once(": alive\n\n".to_owned()))),
            }
        }
        let newest = Arc::clone(&self.snapshots.borrow_and_update());
        let data: Event = match &self.last {
            None => Box::new(newest.json()),
            Some(last) => Box::new(newest.changes_since(last)),
        };
        self.last = Some(newest);
        // JSON has no line feed in it.
        let begin = once("event: look\ndata: ".to_owned());
        Some(Box::new(begin.chain(data).chain(once("\n\n".to_owned()))))
    }
}
