//! One partition in a worker: acquire, publish, work, drain, release, and again.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, FutureExt, Shared};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::ensemble::Operation;
use zookeeper_recipes_core::{
    Backoff, Contender, CreateMode, Error, FencingToken, Hold, SessionState,
};
use zookeeper_recipes_lock::{AfterSessionLoss, ExclusiveLock, LockOptions};

use crate::assignment::Assignment;
use crate::events::{Release, report};
use crate::options::Warm;
use crate::owned::Owns;
use crate::sessions::Sessions;
use crate::work::{Job, WorkEnd, Works};

/// After shorter work the worker pauses, so that work that returns at once is no busy loop.
const SHORT_WORK: Duration = Duration::from_secs(10);
/// The first pause after work that was short. Each further one is twice as long.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause after work that was short.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How many locks a worker enters at once: a create and a list of each are outstanding.
pub(crate) const ENTRIES: usize = 64;

/// Resolves when a partition has been prepared, together with others.
pub(crate) type Prepared = Shared<BoxFuture<'static, ()>>;

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
pub(crate) struct Worker {
    pub(crate) assignment: Assignment,
    pub(crate) sessions: Sessions,
    /// What it owns now, for the task that publishes it.
    pub(crate) owns: watch::Sender<Owns>,
    /// A permit for each lock that the worker enters.
    pub(crate) entries: Arc<Semaphore>,
    pub(crate) works: Works,
}

impl Worker {
    /// Creates the missing directories of these partitions' locks, by one transaction.
    ///
    /// Each lock would create its own by three more requests. It does if this fails.
    pub(crate) async fn prepare(self: Arc<Self>, ids: Vec<Arc<str>>) {
        let locks = &self.assignment.layout.locks;
        let Ok(server) = self.assignment.session.server(locks).await else {
            return;
        };
        let paths = ids.iter().map(|id| format!("{locks}/{id}"));
        let paths: Vec<String> = paths.collect();
        let Ok(found) = server.get_each(&paths).await else {
            return;
        };
        let missing = paths.into_iter().zip(found).filter(|it| it.1.is_none());
        let create = |(path, _)| {
            let mode = CreateMode::Container;
            Operation::create(path, b"", mode, &*self.assignment.options.acl)
        };
        let creates: Vec<Operation> = missing.map(create).collect();
        if !creates.is_empty() {
            let _ = server.transact(&creates).await;
        }
    }

    /// Owns the partition as long as it should. Returns its name once it should not and does not.
    ///
    /// `prepared` resolves when the directory of its lock may be there.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`].
    // Each partition has such a future for as long as it is owned. So it boxes what is short.
    pub(crate) async fn keep(
        self: Arc<Self>,
        id: Arc<str>,
        mut directive: watch::Receiver<Directive>,
        prepared: Prepared,
    ) -> Result<Arc<str>, Error> {
        tokio::select! {
            biased;
            () = until_not_owned(&mut directive) => return Ok(id),
            () = prepared => {}
        }
        let mut pause = SHORTEST_PAUSE;
        loop {
            let mut job = tokio::select! {
                biased;
                () = until_not_owned(&mut directive) => return Ok(id),
                job = self.begin(&id).boxed() => job?,
            };
            let (token, began) = (job.hold.fencing_token(), Instant::now());
            let release = self.work(&id, &mut job, &mut directive).await;
            self.end(&id, job, release).boxed().await;
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

    /// Warms and acquires, until another try would not help. Then publishes, and begins the work.
    async fn begin(&self, id: &Arc<str>) -> Result<Job, Error> {
        let assignment = &self.assignment;
        let options = &assignment.options;
        if let Some(Warm(warm)) = &options.warm {
            let (warm, partition) = (warm.clone(), id.to_string());
            // The hook may block its thread, in a task of its own.
            let mut warmed = self.works.spawn(async move { warm(partition).await });
            warmed.output().await;
        }
        let path = assignment.layout.locks.join(id)?;
        let options = LockOptions::new()
            .name(options.name.clone())
            .data(assignment.id.as_bytes())
            .acl(options.acl.clone())
            .entries(self.entries.clone())
            .after_session_loss(AfterSessionLoss::Requeue);
        let mut backoff = Backoff::default();
        let hold = loop {
            let session_of_lock = self.sessions.with_room_for(assignment, &path, ENTRIES);
            let options = options.clone();
            let lock = ExclusiveLock::with_options(&session_of_lock, path.as_str(), options)?;
            // If the session is closed, the acquisition returns the error.
            let _ = session_of_lock.wait_connected().await;
            match lock.acquire().await {
                Ok(hold) => break hold,
                // The attempt may have failed with another error of the session's end.
                Err(_) if matches!(assignment.session.state(), SessionState::Ended(_)) => {
                    return Err(assignment.no_session(&path));
                }
                Err(error) => {
                    assignment.report_not_acquired(id, &error);
                    self.sessions.forget_ended();
                    backoff.wait().await;
                }
            }
        };
        let token = hold.fencing_token();
        self.owns.send_modify(|owns| {
            owns.insert(id.to_string(), (hold.view(), SystemTime::now()));
        });
        assignment.report_owned(id, token.get(), self.owns.borrow().len());
        Ok(self.works.begin(id.clone(), hold))
    }

    /// Releases a partition whose work has ended.
    async fn end(&self, id: &str, job: Job, release: Release) {
        let assignment = &self.assignment;
        let token = job.hold.fencing_token().get();
        self.owns.send_modify(|owns| {
            owns.remove(id);
        });
        if let Some(hold) = job.into_hold().filter(|hold| hold.is_held()) {
            if let Err(error) = hold.release().await {
                let partition = id;
                report!(assignment, debug, "partition lost before its release", partition, %error);
            }
        }
        assignment.report_released(id, token, release, self.owns.borrow().len());
    }

    /// Works until the work has ended: it has returned, its hold is lost, or it was drained.
    async fn work(
        &self,
        id: &str,
        job: &mut Job,
        directive: &mut watch::Receiver<Directive>,
    ) -> Release {
        let release = tokio::select! {
            biased;
            release = self.until_drained(&job.hold, directive) => release,
            end = job.task.output() => return match end {
                Some(Ok(result)) => {
                    self.assignment.report_worked(id, result);
                    Release::Worked
                }
                Some(Err(reason)) => Release::Lost(reason),
                None => Release::Worked,
            },
        };
        job.drain();
        self.assignment.report_draining(id, release);
        match self.drain(id, job).await {
            Some(Err(reason)) => Release::Lost(reason),
            _ => release,
        }
    }

    /// Waits for the work to end, for as long as the options say.
    async fn drain(&self, id: &str, job: &mut Job) -> Option<WorkEnd> {
        let by = &self.assignment;
        let limit = by.options.drain_at_most;
        if limit < Duration::MAX {
            if let Ok(ended) = timeout(limit, job.task.output()).await {
                return ended;
            }
            report!(by, warn, "work dropped", partition = id, after = ?limit);
            job.task.stop();
        }
        let warn_after = by.session.timeout().unwrap_or(SHORT_WORK);
        let began = Instant::now();
        loop {
            match timeout(warn_after, job.task.output()).await {
                Ok(ended) => return ended,
                Err(_) => {
                    let waited = began.elapsed();
                    report!(by, warn, "work does not end", partition = id, ?waited);
                }
            }
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
            let release = async {
                match now {
                    Directive::Own => pending().await,
                    Directive::Leave => Release::NotPlanned,
                    Directive::End => Release::End,
                    Directive::Give(limit) => {
                        match timeout(limit, self.until_next_waits(hold).boxed()).await {
                            Ok(()) => Release::Given,
                            Err(_) => Release::NobodyCame,
                        }
                    }
                }
            };
            tokio::select! {
                biased;
                changed = directive.changed() => if changed.is_err() {
                    return Release::End;
                },
                release = release => return release,
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
        let (session, locks) = (&self.assignment.session, &self.assignment.layout.locks);
        while let Ok(server) = session.server(locks).await {
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
        pending().await
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
