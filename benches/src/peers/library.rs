//! What a library in Rust must be able to do.

use std::sync::Arc;

use async_trait::async_trait;
use clap::ValueEnum;
use futures_util::future::BoxFuture;

pub(crate) const PERMITS: u32 = 5;

/// A kind of lock that contenders acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Lock,
    /// An exclusive lock made anew for each turn.
    Fresh,
    /// An exclusive lock whose release is not awaited.
    Dropped,
    /// An exclusive lock for all the tasks of a process.
    Shared,
    /// One hold for all the tasks of a process.
    Mutex,
    Read,
    Write,
    Semaphore,
    /// A try for a lock that another session holds. It acquires nothing.
    Try,
}

pub(crate) type Release = BoxFuture<'static, anyhow::Result<()>>;

/// Acquires a lock, any number of times.
pub(crate) type Lock = Arc<dyn Fn() -> BoxFuture<'static, anyhow::Result<Release>> + Send + Sync>;

/// A library with its sessions. It opens each session when that is first used.
#[async_trait]
pub(crate) trait Library: Send {
    fn version(&self) -> String;

    async fn lock(&mut self, kind: Kind, session: usize, path: &str) -> anyhow::Result<Lock>;

    async fn close(&mut self);
}

/// The session of this number. The call opens that session, and all sessions of lower numbers,
/// unless they are open.
pub(crate) async fn nth<S, F: Future<Output = anyhow::Result<S>> + Send>(
    sessions: &mut Vec<S>,
    number: usize,
    open: impl Fn() -> F,
) -> anyhow::Result<&S> {
    while sessions.len() <= number {
        let session = open().await?;
        sessions.push(session);
    }
    Ok(&sessions[number])
}
