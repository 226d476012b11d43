//! Locks that are handed on while an overview is kept up to date.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::{Instant, MissedTickBehavior, interval};
use zookeeper_recipes_core::CreateMode;
use zookeeper_recipes_core::ensemble::ServerSession;

use crate::tree::{CONTENDER, ROOT, everyone};

/// How many locks are handed on.
const LOCKS: usize = 100;

/// The interval between two groups of handoffs.
const TICK: Duration = Duration::from_millis(10);

/// Locks, each with a holder.
pub(crate) struct Load {
    session: Arc<ServerSession>,
    locks: Vec<(String, String)>,
}

impl Load {
    pub(crate) async fn new(session: Arc<ServerSession>) -> anyhow::Result<Load> {
        let base = format!("{ROOT}/load");
        let mut locks = Vec::new();
        // It is there if this is not the first load.
        let _ = session
            .create(&base, b"", CreateMode::Persistent, &everyone()[..])
            .await;
        for lock in 0..LOCKS {
            let path = format!("{base}/{lock:03}");
            let _ = session
                .create(&path, b"", CreateMode::Persistent, &everyone()[..])
                .await;
            let holder = queue(&session, &path).await?;
            locks.push((path, holder));
        }
        Ok(Load { session, locks })
    }

    /// Hands locks on, so many a second, and returns how many it were.
    pub(crate) async fn run(&mut self, per_second: u32, time: Duration) -> anyhow::Result<u64> {
        let (began, mut done) = (Instant::now(), 0);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        while began.elapsed() < time {
            ticks.tick().await;
            let due = (began.elapsed().as_secs_f64() * f64::from(per_second)) as u64;
            let number = usize::try_from(due.saturating_sub(done))?.min(LOCKS);
            let first = usize::try_from(done)? % LOCKS;
            self.locks.rotate_left(first.min(number));
            let session = &self.session;
            let handed = self.locks[..number].iter_mut().map(async |(path, holder)| {
                let next = queue(session, path).await?;
                session.delete(&std::mem::replace(holder, next)).await?;
                anyhow::Ok(())
            });
            done += try_join_all(handed).await?.len() as u64;
            self.locks.rotate_left(number);
        }
        Ok(done)
    }

    /// Deletes the holders.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        let ends = self
            .locks
            .iter()
            .map(|(_, holder)| self.session.delete(holder));
        try_join_all(ends).await?;
        Ok(())
    }
}

async fn queue(session: &ServerSession, path: &str) -> anyhow::Result<String> {
    let mode = CreateMode::EphemeralSequential;
    let path = format!("{path}/{CONTENDER}");
    let created = session.create(path, b"load.example:4242", mode, &everyone()[..]);
    Ok(created.await?.path)
}
