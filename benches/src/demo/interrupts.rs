//! Ctrl-C, and other processes that ask this one to end.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    pub(crate) fn new() -> anyhow::Result<Interrupts> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Interrupts {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Runs `work` to its end or to the next interrupt.
    pub(crate) async fn end<T>(
        &mut self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        tokio::select! {
            outcome = work => outcome,
            _ = self.interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
            _ = self.terminate.recv() => Err(anyhow::anyhow!("interrupted")),
        }
    }
}
