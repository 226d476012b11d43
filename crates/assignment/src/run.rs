//! A worker, from its start to its end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FutureExt, try_join};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{Backoff, Error, InvalidInput};
use zookeeper_recipes_election::{ElectionOptions, LeaderElection, RunError, StopWork};
use zookeeper_recipes_group::{Member, Membership};

use crate::assignment::Assignment;
use crate::children::ChildrenOf;
use crate::events::report;
use crate::kept::{keep, known};
use crate::layout::is_persistent;
use crate::member;
use crate::next_plans::{GIVE, OWN};
use crate::owned::Owns;
use crate::partition::Partition;
use crate::partitions::Partitions;
use crate::pieces::{Lines, Record, Unreadable};
use crate::plans::own_plan;
use crate::recorded;
use crate::retry::may_pass;
use crate::running::Running;
use crate::sessions::Sessions;
use crate::slots::Slots;
use crate::task::Task;
use crate::work::Works;
use crate::worker::{Directive, ENTRIES, Worker};

/// The time that a session has, if none is open.
const NO_SESSION: Duration = Duration::from_secs(10);

/// A worker's id is taken if another process has it for so many session timeouts, over one
/// connection.
const TAKEN: u32 = 4;

impl Assignment {
    /// Works on the partitions that the plan gives to this worker, until `shutdown`.
    ///
    /// The worker joins the group of the workers, campaigns for the plan, and follows its own plan.
    /// For each partition that the plan gives to it, it acquires the partition's lock, and then
    /// calls `work`. The [crate](crate) has an example.
    ///
    /// The future of `work` runs in a task of its own, in the runtime that polls `run`. All else runs
    /// in the background of the session: the campaign, the plans, the acquisitions and the record of
    /// what the worker owns. So `run` need not be polled for them.
    ///
    /// | what happens | what `run` does |
    /// |---|---|
    /// | the plan gives the partition to another worker | waits until that worker queues for the lock, [drains](Partition::draining), releases |
    /// | the partition is removed | drains and releases |
    /// | the lock is lost | drops the work, and acquires again |
    /// | the session expires | drops all work, and joins and acquires again in a new session |
    /// | `work` returns | releases, and acquires again after a pause; an event says so |
    /// | the plan is missing or cannot be read | keeps what the worker owns; an event says so |
    /// | the servers refuse the record of what the worker owns | keeps it, and writes again; an event says so |
    /// | `shutdown` resolves | leaves the group, drains all partitions, releases them, returns |
    ///
    /// The pause after work that returned is 20 ms at first, twice as long each time, up to 10 s,
    /// less a random part of up to a half. Work that lasts 10 s ends the doubling. Meanwhile nobody
    /// owns the partition. So work on a partition returns when it is
    /// [draining](Partition::draining), and should not return earlier.
    ///
    /// If other workers are there at the shutdown, and no [grace](crate::AssignmentOptions::grace) is
    /// set, each partition waits for its next owner, for at most the session timeout. So there is no
    /// gap in service. Then the work has
    /// [`drain_at_most`](crate::AssignmentOptions::drain_at_most) to end.
    ///
    /// Work that blocks its thread is not dropped, and keeps its partition until it returns to an
    /// `.await`. It does not delay the work on other partitions while the runtime has another
    /// thread. In a `current_thread` runtime it stops all, also the session that was opened there:
    /// see [`common::docs::runtimes`](crate::common::docs::runtimes). If the lock is lost meanwhile,
    /// the worker counts as one that [does not take](crate::AssignmentOptions::move_within) the
    /// partition, and another worker gets it.
    ///
    /// Costs: see [`docs::limits`](crate::docs::limits#costs).
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] at once if this worker runs already in this session, or there is a
    ///   persistent znode at its name; if another process has the worker's id for four session
    ///   timeouts of one connection; if the recorded partitions or the worker's plan are of
    ///   another version, or a line of the record names no partition.
    /// * [`Error::Refused`], for example without the permission to write.
    /// * [`Error::NoSession`] if the session is closed.
    ///
    /// After an error all partitions are released in the background.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the runtime drops each work at its next `.await`, and each partition
    /// is then released in the background.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, and if `work` panics.
    ///
    /// # Session loss
    ///
    /// `run` continues in the next session.
    pub async fn run<F, E>(
        &self,
        shutdown: impl Future<Output = ()>,
        work: impl Fn(Partition) -> F + Send + Sync + 'static,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let _running = Running::begin(&self.session, &self.layout.base, &self.id)?;
        let ensemble = self.session.ensemble();
        let works = Works::new(ensemble.clone(), work);
        let (stop, asked) = oneshot::channel();
        let running = self.clone().in_background(asked, works);
        let mut running = Task::spawn(self.session.runtime(), &**ensemble, running);
        let ended = tokio::select! {
            biased;
            ended = running.output() => ended,
            () = shutdown => {
                // An error means that the task has ended, and has an output.
                let _ = stop.send(());
                running.output().await
            }
        };
        ended.unwrap_or_else(|| Err(self.no_session(&self.layout.base)))
    }

    async fn in_background(
        self,
        mut shutdown: oneshot::Receiver<()>,
        works: Works,
    ) -> Result<(), Error> {
        let (membership, mut plan) = tokio::select! {
            biased;
            _ = &mut shutdown => return Ok(()),
            started = self.start().boxed() => started?,
        };
        let (owns, owned) = watch::channel(Owns::new());
        let worker = Arc::new(Worker {
            assignment: self.clone(),
            sessions: Sessions::default(),
            owns,
            entries: Arc::new(Semaphore::new(ENTRIES)),
            works,
        });
        let mut publish = self.publish(owned).boxed();
        let (stop, stopped) = watch::channel(false);
        let mut campaign = self.campaign(stopped).boxed();
        let mut slots = Slots::new(worker.clone());
        loop {
            tokio::select! {
                biased;
                _ = &mut shutdown => break,
                ended = &mut campaign => return ended,
                error = &mut publish => return Err(error),
                error = slots.run() => return Err(error),
                changed = plan.changed() => match changed {
                    Ok(()) => self.follow(&plan.borrow_and_update(), &mut slots),
                    Err(_) => return Err(self.no_session(&self.layout.plan)),
                },
            }
        }
        slots.all(self.parting().boxed().await);
        let leave = async {
            stop.send_replace(true);
            campaign.await?;
            // The leader learns of it now, and plans without this worker.
            match membership.leave().await {
                Err(error @ Error::Refused { .. }) => Err(error),
                _ => Ok(()),
            }
        };
        let end = async {
            try_join(leave, slots.run_to_the_end()).await?;
            worker.sessions.close_further().await;
            Ok(())
        };
        tokio::select! {
            biased;
            ended = end => ended,
            error = publish => Err(error),
        }
    }

    /// Joins the group, and begins to read the plan.
    async fn start(&self) -> Result<(Membership, watch::Receiver<Record<Lines>>), Error> {
        let (session, layout) = (&self.session, &self.layout);
        let recorded = self.begin().await?;
        if recorded != self.partitions {
            let (recorded, given) = (recorded.len(), self.partitions.len());
            let remedy = "set_partitions replaces the recorded ones";
            report!(
                self,
                warn,
                "other partitions are recorded",
                recorded,
                given,
                remedy
            );
        }
        let pieces = ChildrenOf::plan(&layout.plan, &self.id);
        let (directory, worker) = (layout.plan.clone(), self.id.clone());
        let plan = keep(session, pieces, Duration::ZERO, move |found| {
            own_plan(&directory, &worker, &found)
        });
        let mut plan = known(session, &layout.plan, plan).await?;
        // The leader writes over anything else.
        if let Record::Unreadable(path, problem @ Unreadable::Version(_)) = &*plan.borrow() {
            return Err(recorded::unreadable(path, problem));
        }
        plan.mark_changed();
        Ok((self.join().await?, plan))
    }

    /// Creates the missing directories, and records the partitions unless some are recorded. Returns
    /// the recorded ones.
    pub(crate) async fn begin(&self) -> Result<Partitions, Error> {
        let (session, layout, acl) = (&self.session, &self.layout, &self.options.acl);
        layout.create(session, acl).await?;
        recorded::record(session, &layout.partitions, &self.partitions, acl, false).await
    }

    /// Joins the group, until another try would not help.
    async fn join(&self) -> Result<Membership, Error> {
        let mut backoff = Backoff::default();
        loop {
            // If the session is closed, the group returns the error.
            let _ = self.session.wait_connected().await;
            let joined = tokio::select! {
                biased;
                joined = self.group.join(&*self.id, member::text(&self.options)) => joined,
                problem = self.until_taken() => {
                    return Err(InvalidInput::new("worker", &*self.id, problem).into());
                }
            };
            match joined {
                Err(error) if may_pass(&error) => backoff.wait().await,
                joined => return joined,
            }
        }
    }

    /// Waits until another process has had the worker's id for so many looks, a session timeout
    /// apart. Returns what is wrong.
    async fn until_taken(&self) -> String {
        let workers = &self.layout.workers;
        let pause = self.session.timeout().unwrap_or(NO_SESSION);
        let (mut before, mut times) = (None, 0);
        loop {
            let own = workers.join(&self.id);
            if let Ok(true) = async { is_persistent(&self.session, &own?).await }.await {
                return format!("is the name of a persistent znode below {workers}: delete it");
            }
            // A new leader gives each session its whole timeout again, also that of a process that
            // has died. A server that changes its leader closes its connections.
            let server = self.session.server(workers).await;
            let connection = server.map_or(None, |server| server.connection());
            let members = self.group.members().await.unwrap_or_default();
            let own = self.session.id();
            let is_other = |it: &Member| it.name == *self.id && Some(it.session_id) != own;
            let other = members.into_iter().find(is_other);
            let other = connection.zip(other.map(|it| it.token));
            times = match other.is_some() && other == before {
                true => times + 1,
                false => 0,
            };
            if times == TAKEN {
                let time = pause * TAKEN;
                return format!(
                    "is the id of another process, which has had it at {workers} for the last \
                     {time:?}"
                );
            }
            before = other;
            sleep(pause).await;
        }
    }

    /// Campaigns, and plans while this worker leads.
    async fn campaign(&self, mut stopped: watch::Receiver<bool>) -> Result<(), Error> {
        let options = ElectionOptions::new()
            .name(self.options.name.clone())
            .acl(self.options.acl.clone());
        let (session, path) = (&self.session, self.layout.leader.as_str());
        let election = LeaderElection::with_options(session, path, &*self.id, options)?
            .stop_work(StopWork::WhenLost);
        let stop = async {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        // The future owns the assignment. The compiler cannot prove of a future that borrows from
        // the closure that it is `Send`.
        let assignment = self.clone();
        let lead = move |term| {
            let assignment = assignment.clone();
            async move { assignment.lead(term).await }
        };
        let ended = election.run(stop, lead).await;
        ended.map_err(|error| match error {
            RunError::Election(error) | RunError::Work(error) => error,
        })
    }

    /// Follows the plan. One that is missing or cannot be read changes nothing.
    fn follow(&self, plan: &Record<Lines>, slots: &mut Slots) {
        let lines = match plan {
            Record::Missing => return report!(self, debug, "no plan"),
            Record::Unreadable(znode, problem) => {
                return report!(self, warn, "plan not read", znode, %problem);
            }
            Record::Found(lines) => lines,
        };
        let directive = |(partition, word): (&String, &String)| {
            let directive = match word.as_str() {
                OWN => Directive::Own,
                GIVE => Directive::Give(Duration::MAX),
                _ => return None,
            };
            Some((Arc::from(partition.as_str()), directive))
        };
        slots.follow(lines.iter().filter_map(directive).collect());
    }

    /// What this worker does with its partitions at its end.
    async fn parting(&self) -> Directive {
        let limit = self.session.timeout().unwrap_or(NO_SESSION);
        if !self.options.grace.is_zero() {
            return Directive::End;
        }
        // Nobody comes if no other worker is there.
        match timeout(limit, self.group.members()).await {
            Ok(Ok(members)) if members.len() > 1 => Directive::Give(limit),
            _ => Directive::End,
        }
    }
}
