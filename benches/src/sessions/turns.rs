//! Contenders of all sessions that take turns.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinSet;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_lock::ExclusiveLock;

/// A lock that its contenders hand on.
#[derive(Debug, Default)]
struct Queue {
    released: Option<Instant>,
    handoffs: Vec<Handoff>,
}

/// A contender that came to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handoff {
    pub(crate) at: Instant,
    pub(crate) took: Duration,
}

/// Contenders that take turns until they are stopped.
pub(crate) struct Turns {
    stopped: Arc<AtomicBool>,
    contenders: JoinSet<anyhow::Result<()>>,
    queues: Vec<Arc<Mutex<Queue>>>,
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turns {
    /// Lets each session contend for one of this many locks.
    pub(crate) fn begin(sessions: &[Session], number: usize) -> anyhow::Result<Turns> {
        let mut turns = Turns {
            stopped: Arc::default(),
            contenders: JoinSet::new(),
            queues: (0..number).map(|_| Arc::default()).collect(),
        };
        for (place, session) in sessions.iter().enumerate() {
            let which = place % number;
            let contender = ExclusiveLock::new(session, format!("/handed-on/{which}"))?;
            let (stopped, queue) = (turns.stopped.clone(), turns.queues[which].clone());
            turns.contenders.spawn(async move {
                while !stopped.load(Ordering::Relaxed) {
                    let hold = contender.acquire().await?;
                    lock(&queue).acquired();
                    lock(&queue).released = Some(Instant::now());
                    hold.release().await?;
                }
                Ok(())
            });
        }
        Ok(turns)
    }

    /// Takes the handoffs since the last call, by lock.
    pub(crate) fn take(&self) -> Vec<Vec<Handoff>> {
        let queues = self.queues.iter();
        queues
            .map(|queue| mem::take(&mut lock(queue).handoffs))
            .collect()
    }

    /// Lets each contender end its turn.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        self.stopped.store(true, Ordering::Relaxed);
        while let Some(ended) = self.contenders.join_next().await {
            ended?.context("a contender has failed")?;
        }
        Ok(())
    }
}

impl Queue {
    fn acquired(&mut self) {
        let at = Instant::now();
        if let Some(released) = self.released.take() {
            let took = at - released;
            self.handoffs.push(Handoff { at, took });
        }
    }
}
