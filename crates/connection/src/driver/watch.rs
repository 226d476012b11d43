//! A watch, as its caller sees it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;
use zookeeper_recipes_protocol::EventType;

use crate::driver::shared::Shared;
use crate::session::watches::WatchId;

/// What a watch has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The event of the watch.
    Fired(EventType),
    /// The watch is not set any more: the session is over, or its servers do not set watches again.
    Unwatched,
}

/// A watch on the server. It resolves once, with its event.
///
/// # Cancel safety
///
/// If the watch is dropped before it resolves, it is removed from the server, unless another watch
/// of the session needs it. That is one request, and the drop does not wait for the reply.
pub struct Watch {
    pub(crate) shared: Arc<Shared>,
    pub(crate) path: Box<str>,
    pub(crate) id: WatchId,
    /// `None` once the event has come.
    pub(crate) event: Option<oneshot::Receiver<WatchEvent>>,
}

impl Future for Watch {
    type Output = WatchEvent;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<WatchEvent> {
        let Some(event) = &mut self.event else {
            return Poll::Ready(WatchEvent::Unwatched);
        };
        let event = ready!(Pin::new(event).poll(context));
        self.event = None;
        Poll::Ready(event.unwrap_or(WatchEvent::Unwatched))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.event.is_some() {
            self.shared
                .input(|machine, now| machine.unwatch(now, &self.path, self.id));
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Watch({:?})", self.path)
    }
}
