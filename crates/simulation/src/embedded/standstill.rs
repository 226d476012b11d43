//! A server that stands still, as a process does that gets SIGSTOP.

use std::sync::{Mutex, PoisonError, mpsc};

use tokio::sync::mpsc as queue;

/// One standstill: how to say that it has begun, and how to hear that it ends.
#[derive(Debug)]
pub(super) struct Pause {
    begun: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

pub(super) type Pauses = queue::UnboundedReceiver<Pause>;

/// Begins and ends the standstill of a thread.
#[derive(Debug)]
pub(super) struct Standstill {
    pauses: queue::UnboundedSender<Pause>,
    /// The standstill ends when this is dropped.
    current: Mutex<Option<mpsc::Sender<()>>>,
}

impl Standstill {
    pub(super) fn new() -> (Standstill, Pauses) {
        let (pauses, to_be_made) = queue::unbounded_channel();
        let standstill = Standstill {
            pauses,
            current: Mutex::default(),
        };
        (standstill, to_be_made)
    }

    /// Returns when the thread stands still.
    pub(super) fn begin(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            return;
        }
        let (begun, begins) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        if self.pauses.send(Pause { begun, ended }).is_ok() {
            *current = Some(end);
            // An error means that the thread has ended: it stands still for ever.
            let _ = begins.recv();
        }
    }

    pub(super) fn end(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        drop(current.take());
    }
}

/// Blocks the thread whenever it is to stand still.
pub(super) async fn stand_still(mut pauses: Pauses) {
    while let Some(Pause { begun, ended }) = pauses.recv().await {
        let _ = begun.send(());
        // The sender is dropped when the thread may go on.
        let _ = ended.recv();
    }
}
