//! A watch, as its caller sees it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use crate::driver::shared::{Shared, WatchEvent};
use crate::session::watches::WatchId;

/// A watch on the server. It resolves once, with its event.
///
/// # Cancel safety
///
/// If the watch is dropped before it resolves, it is removed from the server, unless another watch
/// of the session needs it. That is one request, and the drop does not wait for the reply.
pub struct Watch {
    watch: AskedWatch,
}

impl Future for Watch {
    type Output = WatchEvent;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<WatchEvent> {
        let event = ready!(Pin::new(&mut self.watch.event).poll(context));
        self.watch.is_over = true;
        Poll::Ready(event.unwrap_or(WatchEvent::Unwatched))
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Watch({:?})", self.watch.path)
    }
}

/// A watch whose read may have no reply yet. If dropped, the watch is removed.
pub(crate) struct AskedWatch {
    shared: Arc<Shared>,
    path: Box<str>,
    id: WatchId,
    event: oneshot::Receiver<WatchEvent>,
    is_over: bool,
}

impl AskedWatch {
    pub(crate) fn new(
        shared: Arc<Shared>,
        path: &str,
        id: WatchId,
        event: oneshot::Receiver<WatchEvent>,
    ) -> AskedWatch {
        AskedWatch {
            shared,
            path: path.into(),
            id,
            event,
            is_over: false,
        }
    }

    pub(crate) fn set(self) -> Watch {
        Watch { watch: self }
    }
}

impl Drop for AskedWatch {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared
                .input(|machine, now| machine.unwatch(now, &self.path, self.id));
        }
    }
}

impl fmt::Debug for AskedWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AskedWatch({:?})", self.path)
    }
}
