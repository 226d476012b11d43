//! A watch, as the owner of a session has it.

use std::fmt;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use zookeeper_recipes_core::ensemble::{Event, SessionEnd};

use crate::wire::connection::ClientId;

/// The way from a watch back to its client.
pub(crate) trait Watching: fmt::Debug + Send + Sync {
    /// A watch was dropped before it had seen anything.
    fn drop_watcher(&self, client: ClientId, path: &str, watcher: u64);
}

/// A watch that stands on a simulated server, or has been triggered.
#[derive(Debug)]
pub(crate) struct SimulatedWatch {
    watching: Weak<dyn Watching>,
    client: ClientId,
    path: String,
    id: u64,
    event: oneshot::Receiver<Event>,
    told: bool,
}

impl SimulatedWatch {
    pub(super) fn new(
        watching: Weak<dyn Watching>,
        client: ClientId,
        path: String,
        id: u64,
        event: oneshot::Receiver<Event>,
    ) -> SimulatedWatch {
        SimulatedWatch {
            watching,
            client,
            path,
            id,
            event,
            told: false,
        }
    }
}

impl Future for SimulatedWatch {
    type Output = Event;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        let event = std::task::ready!(Pin::new(&mut self.event).poll(context));
        self.told = true;
        Poll::Ready(event.unwrap_or(Event::SessionEnded(SessionEnd::Closed)))
    }
}

impl Drop for SimulatedWatch {
    fn drop(&mut self) {
        if self.told {
            return;
        }
        if let Some(watching) = self.watching.upgrade() {
            watching.drop_watcher(self.client, &self.path, self.id);
        }
    }
}
