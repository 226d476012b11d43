//! Ctrl-C, and other processes that ask this one to end.

use anyhow::Context;
use signals::{Interrupt, Terminate, listen};

#[cfg(unix)]
mod signals {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(super) type Interrupt = Signal;
    pub(super) type Terminate = Signal;

    pub(super) fn listen() -> io::Result<(Interrupt, Terminate)> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok((interrupt, signal(SignalKind::terminate())?))
    }
}

#[cfg(windows)]
mod signals {
    use std::io;

    use tokio::signal::windows::{CtrlC, CtrlClose, ctrl_c, ctrl_close};

    pub(super) type Interrupt = CtrlC;
    /// The console is closed.
    pub(super) type Terminate = CtrlClose;

    pub(super) fn listen() -> io::Result<(Interrupt, Terminate)> {
        Ok((ctrl_c()?, ctrl_close()?))
    }
}

/// SIGINT and SIGTERM, or what Windows has in their place.
pub(crate) struct Interrupts {
    interrupt: Interrupt,
    terminate: Terminate,
}

impl Interrupts {
    pub(crate) fn new() -> anyhow::Result<Interrupts> {
        let (interrupt, terminate) = listen().context("cannot listen for signals")?;
        Ok(Interrupts {
            interrupt,
            terminate,
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
