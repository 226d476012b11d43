//! The leader: it plans which worker should own which partition.

use std::collections::BTreeSet;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::{Backoff, Error, Refusal, ServerError, Session};
use zookeeper_recipes_election::Term;
use zookeeper_recipes_group::{Group, GroupState};
use zookeeper_recipes_lock::ExclusiveLock;

use crate::events::Reporter;
use crate::kept_state::KeptState;
use crate::layout::Layout;
use crate::options::AssignmentOptions;
use crate::partitions::Partitions;
use crate::patience::Late;
use crate::planner::{Looked, Planner, State};
use crate::plans::{self, NotRead, Plans};
use crate::recorded::{self, Recorded};

/// From this number of partitions on, the plans are computed on a thread of their own. For fewer,
/// that takes less than a millisecond or two.
const MANY: usize = 2_000;

/// How many queues of late moves a look reads at most.
const QUEUES: usize = 8;

/// A look at the state is followed by a rest, which is so many times longer at least, unless moves
/// wait for their turn.
///
/// A look at 100,000 partitions takes about a second of the processor. While workers acquire what
/// they are planned with, each look finds a change.
const REST: u32 = 4;

/// The longest rest. If the process was paused during a look, the look has taken long, too.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// What a worker needs to lead.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    pub(crate) session: Session,
    pub(crate) layout: Layout,
    pub(crate) group: Group,
    /// The partitions of this worker's own configuration.
    pub(crate) partitions: Partitions,
    pub(crate) options: AssignmentOptions,
    pub(crate) reporter: Reporter,
}

/// What the leader watches.
struct Watched {
    workers: watch::Receiver<GroupState>,
    /// What is owned, the orders, the drains and the pins.
    state: KeptState<4>,
}

/// What a leader needs for a look at the state.
#[derive(Default)]
struct Desk {
    planner: Planner,
    /// `None` if the plans must be read.
    plans: Option<Plans>,
    /// How long the last computation took.
    took: Duration,
    /// The record that could not be read at the last look.
    unreadable: Option<Arc<Recorded>>,
}

/// What must happen before the next look, and when.
struct Next {
    ends: Option<Instant>,
    unsettled: bool,
    rest: Duration,
    /// True if the next look needs no change.
    at_once: bool,
}

/// Why a look at the state led to no plan.
enum NoPlan {
    /// The plans must be read again.
    Again(Error),
    /// This worker cannot plan.
    Resign(Error),
}

impl Leader {
    /// Plans until the leadership is lost. Returns if another worker should try.
    pub(crate) async fn lead(&self, term: Term) -> Result<(), Error> {
        let mut watched = self.watch();
        let mut desk = Desk::default();
        let mut backoff = Backoff::default();
        loop {
            let next = match self.plan(&term, &mut watched, &mut desk).await {
                Ok(next) => next,
                Err(NoPlan::Again(error)) => {
                    self.reporter.planning_again(&error);
                    desk.plans = None;
                    backoff.wait().await;
                    continue;
                }
                Err(NoPlan::Resign(error)) => {
                    self.reporter.not_planned(&error);
                    return Ok(());
                }
            };
            backoff = Backoff::default();
            sleep(next.rest).await;
            if next.at_once {
                continue;
            }
            let ends = next.ends;
            let until = ends.map(|end| end.saturating_duration_since(Instant::now()));
            // Somebody may have deleted a plan that a worker has not read yet.
            let recheck = self.session.timeout().filter(|_| next.unsettled);
            let wait = [until, recheck].into_iter().flatten().min();
            let changed = watched.changed();
            let waited = match wait {
                None => Ok(changed.await),
                Some(wait) => timeout(wait, changed).await,
            };
            match waited {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) => desk.plans = None,
            }
        }
    }

    fn watch(&self) -> Watched {
        let layout = &self.layout;
        let directories = [&layout.owned, &layout.orders, &layout.drains, &layout.pins];
        Watched {
            workers: self.group.watch(),
            state: KeptState::new(&self.session, directories, Some(&layout.partitions)),
        }
    }

    /// Looks at the state, and writes the plans that follow from it.
    async fn plan(
        &self,
        term: &Term,
        watched: &mut Watched,
        desk: &mut Desk,
    ) -> Result<Next, NoPlan> {
        if desk.plans.is_none() {
            desk.plans = Some(self.read().await?);
        }
        let least = self.options.plan_interval;
        let Some(looked) = self.look(watched, desk).await else {
            return Ok(Next {
                ends: None,
                unsettled: false,
                rest: least,
                at_once: false,
            });
        };
        let (operations, looked) = (looked.operations, looked.next);
        let has_written = !operations.is_empty();
        let written = plans::write(term, operations).await;
        let took = written.map_err(|error| match error {
            Error::OutcomeUnknown { .. } => NoPlan::Again(error),
            Error::Refused {
                refusal:
                    Refusal::NoNode | Refusal::NodeExists | Refusal::Throttled | Refusal::ReadOnly,
                ..
            } => NoPlan::Again(error),
            error => NoPlan::Resign(error),
        })?;
        let timeout = self.session.timeout().unwrap_or(Duration::MAX);
        desk.planner.written(looked.deferred, took, timeout);
        if has_written {
            self.reporter.planned(&looked.moves, looked.deferred);
        }
        for worker in &looked.back {
            self.reporter.back(worker);
        }
        let has_blamed = self.blame(&looked.late, &mut desk.planner).await;
        Ok(Next {
            ends: looked.ends,
            unsettled: looked.unsettled > 0,
            rest: rest(least, desk.took, looked.deferred > 0 || has_blamed),
            at_once: has_blamed,
        })
    }

    /// Finds out why moves are late. Returns true if the plans should change because of that.
    async fn blame(&self, late: &[Late], planner: &mut Planner) -> bool {
        let mut seen = BTreeSet::new();
        let first = late.iter().filter(|late| seen.insert(&late.to));
        let mut has_blamed = false;
        for late in first.take(QUEUES) {
            let Ok(queue) = self.queue(&late.partition).await else {
                continue;
            };
            has_blamed = true;
            if let Some((worker, fault)) = planner.blame(late, &queue) {
                self.reporter.set_aside(&worker, &late.partition, fault);
            }
        }
        has_blamed
    }

    /// The workers in the queue of a partition's lock, in its order.
    async fn queue(&self, partition: &str) -> Result<Vec<String>, Error> {
        let path = self.layout.locks.join(partition)?;
        let lock = ExclusiveLock::new(&self.session, path.as_str())?;
        let contenders = lock.contenders().await?.into_iter();
        Ok(contenders.map(|it| it.owner.unwrap_or_default()).collect())
    }

    /// Computes the next plans, away from the thread of this task if that takes long. `None` if a
    /// part of the state is not known.
    async fn look(&self, watched: &mut Watched, desk: &mut Desk) -> Option<Looked> {
        self.report_record(watched, desk);
        let state = watched.state()?;
        let mut plans = desk.plans.take()?;
        let mut planner = std::mem::take(&mut desk.planner);
        let (options, now) = (self.options.clone(), Instant::now());
        let is_short = state.partitions.len() < MANY;
        let look = move || {
            let looked = planner.look(&state, &mut plans, &options, now);
            (looked, planner, plans)
        };
        let (looked, planner, plans) = match is_short {
            true => look(),
            false => match spawn_blocking(look).await {
                Ok(done) => done,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // The runtime shuts down, and drops this future.
                    Err(_) => pending().await,
                },
            },
        };
        desk.took = now.elapsed();
        desk.planner = planner;
        desk.plans = Some(plans);
        Some(looked)
    }

    /// Reports a record that cannot be read, once. The plans stay as they are meanwhile.
    fn report_record(&self, watched: &mut Watched, desk: &mut Desk) {
        let recorded = watched.state.record();
        let Some(recorded) = recorded.filter(|it| matches!(**it, Recorded::Unreadable(..))) else {
            desk.unreadable = None;
            return;
        };
        if desk.unreadable.as_ref() != Some(&recorded) {
            if let Recorded::Unreadable(path, problem) = &*recorded {
                self.reporter.record_unreadable(path, problem);
            }
            desk.unreadable = Some(recorded);
        }
    }

    async fn read(&self) -> Result<Plans, NoPlan> {
        let directory = &self.layout.plan;
        let server = self
            .session
            .server(directory)
            .await
            .map_err(NoPlan::Resign)?;
        let error = match Plans::read(&*server, directory).await {
            Ok(plans) => return Ok(plans),
            Err(NotRead::OtherVersion(path, problem)) => {
                let unreadable = recorded::unreadable(&path, &problem);
                return Err(NoPlan::Resign(unreadable));
            }
            Err(NotRead::Server(error)) => error,
        };
        let is_missing = error.is(Refusal::NoNode);
        let is_refused = matches!(error, ServerError::Refused(_));
        let error = Error::at(directory.as_str(), server.id(), error);
        if is_missing {
            self.begin_anew().await.map_err(NoPlan::Resign)?;
        }
        Err(match is_refused && !is_missing {
            true => NoPlan::Resign(error),
            false => NoPlan::Again(error),
        })
    }

    /// Creates the directories and records the partitions, if they have gone since this worker has
    /// started: the servers have lost their data.
    async fn begin_anew(&self) -> Result<(), Error> {
        let (session, layout, acl) = (&self.session, &self.layout, &self.options.acl);
        layout.create(session, acl).await?;
        recorded::open(session, &layout.partitions, &self.partitions, acl).await?;
        Ok(())
    }
}

/// How long the leader rests before its next look.
fn rest(least: Duration, took: Duration, has_deferred: bool) -> Duration {
    match has_deferred {
        true => least,
        false => least.max((took * REST).min(LONGEST_REST)),
    }
}

impl Watched {
    /// The state now. `None` if a part of it is not known yet.
    fn state(&mut self) -> Option<State> {
        let workers = self.workers.borrow_and_update().clone();
        let [owned, orders, drains, pins] = self.state.children()?;
        let recorded = self.state.record()?;
        let (GroupState::Members(members), Recorded::Partitions(partitions)) =
            (workers, &*recorded)
        else {
            return None;
        };
        Some(State {
            members,
            owned,
            orders,
            drains,
            pins,
            partitions: partitions.clone(),
        })
    }

    /// Waits until a part of the state has changed. False if the session is closed.
    async fn changed(&mut self) -> bool {
        tokio::select! {
            biased;
            changed = self.workers.changed() => changed.is_ok(),
            changed = self.state.changed() => changed,
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/leader.rs"]
mod tests;
