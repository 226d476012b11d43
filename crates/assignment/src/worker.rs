//! One partition in a worker: acquire, publish, work, drain, release, and again.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::FutureExt;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::{
    Backoff, Contender, Error, FencingToken, Hold, LossReason, NodePath, Session,
};
use zookeeper_recipes_lock::{AfterSessionLoss, ExclusiveLock, LockOptions};

use crate::events::{Release, Reporter};
use crate::layout::Layout;
use crate::options::AssignmentOptions;
use crate::partition::Partition;
use crate::publisher::{Own, Owns};

/// After shorter work the worker pauses, so that work that returns at once is no busy loop.
const SHORT_WORK: Duration = Duration::from_secs(10);
/// The first pause after work that was short. Each further one is twice as long.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause after work that was short.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How many locks a worker enters at once: a create and a list of each are outstanding.
pub(crate) const ENTRIES: usize = 64;

/// What a worker should do with a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
    /// Own it.
    Own,
    /// Release it once another worker queues behind, or after this time.
    Give(Duration),
    /// Release it.
    Leave,
    /// Release it, because the worker ends.
    End,
}

/// What a worker needs to own partitions.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) session: Session,
    pub(crate) layout: Layout,
    pub(crate) id: Arc<str>,
    pub(crate) options: AssignmentOptions,
    pub(crate) owns: Owns,
    pub(crate) reporter: Reporter,
    /// A permit for each lock that the worker enters.
    pub(crate) entries: Arc<Semaphore>,
}

/// Why the work on a partition has ended.
enum WorkEnd<E> {
    Worked(Result<(), E>),
    Drained(Release),
}

impl Worker {
    /// Owns the partition as long as it should. Returns its name once it should not and does not.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`].
    pub(crate) async fn keep<E: fmt::Display>(
        &self,
        id: Arc<str>,
        mut directive: watch::Receiver<Directive>,
        work: &impl AsyncFn(Partition) -> Result<(), E>,
    ) -> Result<Arc<str>, Error> {
        let Some(path) = self.layout.locks.join(&id).ok() else {
            // No partition of this name can have been recorded.
            return Ok(id);
        };
        let mut pause = SHORTEST_PAUSE;
        loop {
            let hold = tokio::select! {
                biased;
                () = until_not_owned(&mut directive) => return Ok(id),
                hold = self.acquire(&id, &path).boxed() => hold?,
            };
            let (token, began) = (hold.fencing_token(), Instant::now());
            let since = SystemTime::now();
            self.owns.send_modify(|owns| {
                owns.insert(id.to_string(), Own { token, since });
            });
            self.reporter.owned(&id, token, self.owns.borrow().len());
            let ended = self.work(&id, &hold, &mut directive, work).await;
            self.owns.send_modify(|owns| {
                owns.remove(&*id);
            });
            let release = match ended {
                Ok(WorkEnd::Drained(release)) => release,
                Ok(WorkEnd::Worked(result)) => {
                    self.reporter.worked(&id, result);
                    Release::Worked
                }
                Err(reason) => Release::Lost(reason),
            };
            if let (true, Err(error)) = (hold.is_held(), hold.release().await) {
                self.reporter.not_released(&id, &error);
            }
            let owns = self.owns.borrow().len();
            self.reporter.released(&id, token, release, owns);
            if began.elapsed() >= SHORT_WORK {
                pause = SHORTEST_PAUSE;
            }
            if matches!(release, Release::Worked) {
                tokio::select! {
                    biased;
                    () = until_not_owned(&mut directive) => return Ok(id),
                    () = sleep(spread(pause, token)) => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Warms and acquires, until another try would not help.
    async fn acquire(&self, id: &Arc<str>, path: &NodePath) -> Result<Hold, Error> {
        let options = LockOptions::new()
            .name(self.options.name.clone())
            .data(self.id.as_bytes())
            .acl(self.options.acl.clone())
            .entries(self.entries.clone())
            .after_session_loss(AfterSessionLoss::QueueAnew);
        let lock = ExclusiveLock::with_options(&self.session, path.as_str(), options)?;
        if let Some(warm) = &self.options.warm {
            let limit = self.options.warm_at_most;
            if timeout(limit, warm(id.to_string())).await.is_err() {
                self.reporter.not_warmed(id, limit);
            }
        }
        let mut backoff = Backoff::default();
        loop {
            // If the session is closed, the acquisition returns the error.
            let _ = self.session.wait_connected().await;
            match lock.acquire().await {
                Ok(hold) => return Ok(hold),
                Err(error @ Error::NoSession { .. }) => return Err(error),
                Err(error) => {
                    self.reporter.not_acquired(id, &error);
                    backoff.wait().await;
                }
            }
        }
    }

    /// Works until the work is done, the hold is lost, or the partition is drained.
    async fn work<E>(
        &self,
        id: &Arc<str>,
        hold: &Hold,
        directive: &mut watch::Receiver<Directive>,
        work: &impl AsyncFn(Partition) -> Result<(), E>,
    ) -> Result<WorkEnd<E>, LossReason> {
        let (draining, is_draining) = watch::channel(false);
        let partition = Partition {
            id: id.clone(),
            hold: hold.view(),
            draining: is_draining,
        };
        // If the future were moved, it would take its bytes twice, for each partition.
        let until_done = pin!(async {
            let mut work = pin!(work(partition));
            let release = tokio::select! {
                // The work is not polled once it should drain.
                biased;
                release = self.until_drained(hold, directive) => release,
                result = &mut work => return WorkEnd::Worked(result),
            };
            draining.send_replace(true);
            self.reporter.draining(id, release);
            self.drain(id, work).await;
            WorkEnd::Drained(release)
        });
        hold.run_until_lost(until_done).await
    }

    /// Waits for the work to end, for as long as the options say.
    async fn drain<T>(&self, id: &Arc<str>, mut work: Pin<&mut impl Future<Output = T>>) {
        if let Some(limit) = self.options.drain_at_most {
            if timeout(limit, work).await.is_err() {
                self.reporter.dropped(id, limit);
            }
            return;
        }
        let warn_after = self.session.timeout().unwrap_or(SHORT_WORK);
        let began = Instant::now();
        while timeout(warn_after, &mut work).await.is_err() {
            self.reporter.still_draining(id, began.elapsed());
        }
    }

    /// Waits until the partition should be released.
    async fn until_drained(
        &self,
        hold: &Hold,
        directive: &mut watch::Receiver<Directive>,
    ) -> Release {
        loop {
            let now = *directive.borrow_and_update();
            match now {
                Directive::Own => {}
                Directive::Leave => return Release::NotPlanned,
                Directive::End => return Release::End,
                Directive::Give(limit) => {
                    tokio::select! {
                        biased;
                        changed = directive.changed() => match changed {
                            Ok(()) => continue,
                            Err(_) => return Release::End,
                        },
                        next = timeout(limit, self.until_next_waits(hold).boxed()) => {
                            return match next {
                                Ok(()) => Release::Given,
                                Err(_) => Release::NobodyCame,
                            };
                        }
                    }
                }
            }
            if directive.changed().await.is_err() {
                return Release::End;
            }
        }
    }

    /// Waits until another contender is in the queue of the lock.
    async fn until_next_waits(&self, hold: &Hold) {
        let mut backoff = Backoff::default();
        let directory = hold.node_path().rsplit_once('/');
        let (directory, own) = directory.unwrap_or_default();
        // Somebody may keep other znodes there.
        let waits = |name: &String| name != own && Contender::parse(name, |_| true).is_some();
        // If the session ends, the hold is lost, and this future is dropped.
        while let Ok(server) = self.session.server(&self.layout.locks).await {
            let listed = server.list_and_watch(directory).await;
            drop(server);
            match listed {
                Ok((names, _)) if names.iter().any(waits) => return,
                Ok((_, changed)) => {
                    changed.await;
                    backoff = Backoff::default();
                }
                Err(_) => backoff.wait().await,
            }
        }
        std::future::pending().await
    }
}

/// Between half and all of a pause, so that partitions whose work fails together do not all come
/// back together.
fn spread(pause: Duration, token: FencingToken) -> Duration {
    // The high bits of a product with the golden ratio are spread evenly.
    let number = u64::from_ne_bytes(token.get().to_ne_bytes());
    let part = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    pause / 2 + pause / 2 * u32::try_from(part).unwrap_or_default() / 1024
}

/// Resolves when the worker should not own the partition any more.
async fn until_not_owned(directive: &mut watch::Receiver<Directive>) {
    // An error means that the worker ends.
    let _ = directive.wait_for(|now| *now != Directive::Own).await;
}
