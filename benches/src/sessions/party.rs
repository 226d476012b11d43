//! The fleet of a library, as the bench sees it.

use async_trait::async_trait;

/// The sessions of a library, the locks that they hold, and contenders that take turns.
#[async_trait]
pub(crate) trait Party {
    fn version(&self) -> String;

    fn process(&self) -> Option<u32>;

    /// Takes the times of the handoffs since the last call, in milliseconds.
    async fn take(&mut self) -> anyhow::Result<Vec<f64>>;

    /// How many of the locks that the sessions hold all the time are held.
    async fn held(&mut self) -> anyhow::Result<usize>;

    /// A member has died now. Each session acquires a lock that nobody has used before.
    async fn died(&mut self) -> anyhow::Result<()>;

    /// Waits until each session has acquired its lock.
    async fn recovery(&mut self) -> anyhow::Result<Recovery>;

    /// Lets each contender end its turn, and closes the sessions.
    async fn end(self: Box<Self>) -> anyhow::Result<()>;
}

/// The first seconds of a fleet after the death of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    /// When the lock of each session had been acquired and released, in seconds, in order.
    pub(crate) works_after: Vec<f64>,
    /// The longest time without a handoff of each lock that is handed on, in seconds, in order.
    pub(crate) gaps: Vec<f64>,
    /// The calls that have ended with an error, and were made again.
    pub(crate) failures: usize,
}

pub(crate) fn in_order(figures: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures
}
