//! Ctrl-C, and other processes that ask this one to end.

use anyhow::Context;

#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{ctrl_c, ctrl_close};

/// Runs `work` to its end or to the next interrupt: SIGINT and SIGTERM, or what Windows has in their
/// place.
pub(crate) async fn until_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    const DEAF: &str = "cannot listen for signals";
    #[cfg(unix)]
    let (mut interrupt, mut end) = (
        signal(SignalKind::interrupt()).context(DEAF)?,
        signal(SignalKind::terminate()).context(DEAF)?,
    );
    #[cfg(windows)]
    let (mut interrupt, mut end) = (ctrl_c().context(DEAF)?, ctrl_close().context(DEAF)?);
    tokio::select! {
        outcome = work => outcome,
        _ = interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
        _ = end.recv() => Err(anyhow::anyhow!("interrupted")),
    }
}
