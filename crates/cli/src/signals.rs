//! Signals to a `zkr` that runs no command.

/// Resolves with the signal that ends the program, so that it can tidy up.
///
/// Signals are received from the call on, before the future is polled.
pub(crate) fn ended_by_signal() -> impl Future<Output = i32> {
    #[cfg(unix)]
    let signals = crate::run::Signals::new();
    async move {
        #[cfg(unix)]
        if let Ok(mut signals) = signals {
            return signals.end().await;
        }
        std::future::pending().await
    }
}

/// The moments at which this process continues after a stop.
#[derive(Debug)]
pub(crate) struct Continued {
    #[cfg(unix)]
    signal: std::io::Result<tokio::signal::unix::Signal>,
}

impl Continued {
    pub(crate) fn new() -> Continued {
        Continued {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(
                rustix::process::Signal::CONT.as_raw(),
            )),
        }
    }

    /// Resolves when the process continues. It never does if the system does not say so.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Ok(signal) = &mut self.signal {
            if signal.recv().await.is_some() {
                return;
            }
        }
        std::future::pending().await
    }
}
