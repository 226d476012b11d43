//! Who owns how many partitions, at each moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::time::sleep;

/// How often a wait looks.
const LOOK: Duration = Duration::from_millis(1);

/// The longest wait, and how much longer for each partition.
const PATIENCE: Duration = Duration::from_secs(300);
const PATIENCE_EACH: Duration = Duration::from_millis(10);

/// The partitions that each worker owns, counted in this process.
#[derive(Clone, Debug)]
pub(crate) struct Ownership(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    by_worker: Vec<usize>,
    /// How often each partition has got an owner.
    grants: Vec<u32>,
    /// The sum over all partitions of the time without an owner, until `changed`.
    without_owner: Duration,
    changed: Instant,
}

/// What has happened since the last reset.
#[derive(Clone, Debug)]
pub(crate) struct Since {
    /// The partitions that have got an owner, one that gets several counted as often.
    pub(crate) grants: u32,
    /// The most owners that one partition has got.
    pub(crate) most_grants: u32,
    /// The sum over all partitions of the time without an owner, in seconds.
    pub(crate) without_owner: f64,
}

impl Counts {
    fn owned(&self) -> usize {
        self.by_worker.iter().sum()
    }

    /// Counts the time until now.
    fn advance(&mut self) {
        let now = Instant::now();
        let missing = self.grants.len().saturating_sub(self.owned());
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        self.without_owner += missing * (now - self.changed);
        self.changed = now;
    }
}

impl Ownership {
    pub(crate) fn new(partitions: usize, workers: usize) -> Ownership {
        Ownership(Arc::new(Mutex::new(Counts {
            by_worker: vec![0; workers],
            grants: vec![0; partitions],
            without_owner: Duration::ZERO,
            changed: Instant::now(),
        })))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker owns a partition, until the value is dropped.
    pub(crate) fn own(&self, worker: usize, partition: usize) -> Owned {
        let mut counts = self.counts();
        counts.advance();
        counts.by_worker[worker] += 1;
        counts.grants[partition] += 1;
        Owned {
            ownership: self.clone(),
            worker,
        }
    }

    /// A worker owns these partitions, and no others.
    pub(crate) fn set(&self, worker: usize, partitions: &[usize]) {
        let mut counts = self.counts();
        counts.advance();
        counts.by_worker[worker] = partitions.len();
        for partition in partitions {
            counts.grants[*partition] += 1;
        }
    }

    /// Begins to count anew. Who owns what stays.
    pub(crate) fn reset(&self) {
        let mut counts = self.counts();
        counts.without_owner = Duration::ZERO;
        counts.changed = Instant::now();
        counts.grants.fill(0);
    }

    pub(crate) fn since_reset(&self) -> Since {
        let mut counts = self.counts();
        counts.advance();
        Since {
            grants: counts.grants.iter().sum(),
            most_grants: counts.grants.iter().copied().max().unwrap_or(0),
            without_owner: counts.without_owner.as_secs_f64(),
        }
    }

    /// Waits until each partition has an owner, and this worker owns nothing.
    pub(crate) async fn until_owned_without(&self, absent: Option<usize>) -> anyhow::Result<()> {
        self.until(|counts| {
            let is_absent = absent.is_none_or(|worker| counts.by_worker[worker] == 0);
            is_absent && counts.owned() == counts.grants.len()
        })
        .await
    }

    /// Waits until each partition has an owner, and these workers own the same number, or one more.
    pub(crate) async fn until_balanced(&self, workers: &[usize]) -> anyhow::Result<()> {
        self.until(|counts| {
            let owned = || workers.iter().map(|worker| counts.by_worker[*worker]);
            let least = owned().min().unwrap_or(0);
            let is_even = owned().max().is_none_or(|most| most - least <= 1);
            is_even && counts.owned() == counts.grants.len()
        })
        .await
    }

    async fn until(&self, is_true: impl Fn(&Counts) -> bool) -> anyhow::Result<()> {
        let began = Instant::now();
        let partitions = u32::try_from(self.counts().grants.len())?;
        let patience = PATIENCE + PATIENCE_EACH * partitions;
        while !is_true(&self.counts()) {
            let late = began.elapsed() > patience;
            ensure!(!late, "not settled in {patience:?}: {:?}", self.counts());
            sleep(LOOK).await;
        }
        Ok(())
    }
}

/// A partition with an owner.
#[derive(Debug)]
pub(crate) struct Owned {
    ownership: Ownership,
    worker: usize,
}

impl Drop for Owned {
    fn drop(&mut self) {
        let mut counts = self.ownership.counts();
        counts.advance();
        counts.by_worker[self.worker] -= 1;
    }
}
