//! The leader: it plans which worker should own which partition.

use std::collections::BTreeSet;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::ensemble::Operation;
use zookeeper_recipes_core::{Backoff, Error, Refusal, SessionState};
use zookeeper_recipes_election::Term;
use zookeeper_recipes_group::GroupState;
use zookeeper_recipes_lock::ExclusiveLock;

use crate::assignment::Assignment;
use crate::children::{Children, read_children};
use crate::events::{TARGET, report};
use crate::kept::keep;
use crate::next_plans::Next;
use crate::patience::Late;
use crate::planner::Planner;
use crate::plans::{self, Plans};
use crate::recorded::Recorded;
use crate::retry::refusal;
use crate::state::StateOf;

/// The least time between two plans. What happens meanwhile leads to one plan.
const INTERVAL: Duration = Duration::from_millis(100);

/// From this number of partitions on, the plans are computed on a thread of their own. For fewer,
/// that takes less than a millisecond or two.
const MANY: usize = 2_000;

/// How many queues of late moves a look reads at most.
const QUEUES: usize = 8;

/// A look at the state is followed by a rest, which is so many times longer at least, unless moves
/// wait for their turn. A look at 100,000 partitions takes about a second of the processor.
const REST: u32 = 4;

/// The longest rest. If the process was paused during a look, the look has taken long, too.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// What is owned, the orders, the drains and the pins; and the record of the partitions.
type Read = Arc<(Vec<Children>, Recorded)>;

/// What a leader needs for a look at the state.
struct Desk {
    workers: watch::Receiver<GroupState>,
    state: watch::Receiver<Option<Read>>,
    planner: Planner,
    /// `None` if the plans must be read.
    plans: Option<Plans>,
    /// How long the last computation took.
    took: Duration,
    /// The record that could not be read at the last look.
    unreadable: Option<Recorded>,
}

impl Assignment {
    /// Plans until the leadership is lost. Returns if another worker should try.
    pub(crate) async fn lead(&self, term: Term) -> Result<(), Error> {
        let layout = &self.layout;
        let directories = [&layout.owned, &layout.orders, &layout.drains, &layout.pins];
        let state = StateOf::new(directories, &layout.partitions);
        let mut desk = Desk {
            workers: self.group.watch(),
            state: keep(&self.session, state, Duration::ZERO, |it| {
                Some(Arc::new(it))
            }),
            planner: Planner::default(),
            plans: None,
            took: Duration::ZERO,
            unreadable: None,
        };
        // The first state is the present one.
        let states = self.session.states().skip(1);
        let is_connected = |state: &SessionState| matches!(state, SessionState::Connected(_));
        let mut reconnects = states.filter(|state| ready(is_connected(state)));
        let mut backoff = Backoff::default();
        loop {
            let (rest, ends) = match self.plan(&term, &mut desk).await {
                Ok(wait) => wait,
                Err(error) if may_plan_again(&error) => {
                    report!(self, debug, "planning again", %error);
                    desk.plans = None;
                    backoff.wait().await;
                    continue;
                }
                Err(error) => {
                    report!(self, warn, "not planned", %error);
                    return Ok(());
                }
            };
            backoff = Backoff::default();
            sleep(rest).await;
            let left = ends.map(|end| end.saturating_duration_since(Instant::now()));
            let changed = desk.changed(&mut reconnects);
            match timeout(left.unwrap_or(Duration::MAX), changed).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // Somebody may have deleted a plan that a worker has not read yet.
                Err(_) => desk.plans = None,
            }
        }
    }

    /// Looks at the state, and writes the plans that follow from it. Returns how long the leader
    /// rests before the next look, and when that look is due without a change.
    async fn plan(
        &self,
        term: &Term,
        desk: &mut Desk,
    ) -> Result<(Duration, Option<Instant>), Error> {
        if desk.plans.is_none() {
            desk.plans = Some(self.read().await?);
        }
        let Some((operations, next)) = self.look(desk).await else {
            return Ok((INTERVAL, None));
        };
        let has_written = !operations.is_empty();
        let took = plans::write(term, operations).await?;
        let session_timeout = self.session.timeout().unwrap_or(Duration::MAX);
        let window = &mut desk.planner.window;
        window.written(next.deferred, took, session_timeout);
        if has_written {
            self.report_plans(&next.moves, next.deferred);
        }
        for worker in &next.back {
            let path = &self.layout.base;
            tracing::info!(target: TARGET, %path, worker, "worker set aside no longer");
        }
        let has_blamed = self.blame(&next.late, &mut desk.planner).await;
        let now = Instant::now();
        let again = (next.unsettled > 0).then(|| now.checked_add(session_timeout));
        let at_once = has_blamed.then_some(now);
        let ends = next.ends.into_iter().chain(again.flatten()).chain(at_once);
        let rest = rest(desk.took, next.deferred > 0 || has_blamed);
        Ok((rest, ends.min()))
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
            if let Some((worker, fault)) = planner.patience.blame(late, &queue) {
                self.report_set_aside(&worker, &late.partition, fault);
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
    async fn look(&self, desk: &mut Desk) -> Option<(Vec<Operation>, Next)> {
        let members = desk.workers.borrow_and_update().clone();
        let read = desk.state.borrow_and_update().clone()?;
        let Recorded::Found(partitions) = read.1.clone() else {
            self.report_record(&read.1, desk);
            return None;
        };
        desk.unreadable = None;
        let GroupState::Members(members) = members else {
            return None;
        };
        let mut plans = desk.plans.take()?;
        let mut planner = std::mem::take(&mut desk.planner);
        let (options, now) = (self.options.clone(), Instant::now());
        let is_short = partitions.len() < MANY;
        let look = move || {
            let (children, plans_now) = (&read.0, &mut plans);
            let looked = planner.look(&members, children, &partitions, plans_now, &options, now);
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
    fn report_record(&self, recorded: &Recorded, desk: &mut Desk) {
        if let Recorded::Unreadable(znode, problem) = recorded {
            if desk.unreadable.replace(recorded.clone()).as_ref() != Some(recorded) {
                let remedy = "set_partitions writes the record anew";
                report!(self, warn, "partitions not read", znode, %problem, remedy);
            }
        }
    }

    async fn read(&self) -> Result<Plans, Error> {
        let directory = &self.layout.plan;
        let server = self.session.server(directory).await?;
        let children = read_children(&server, directory).await;
        if matches!(&children, Err(error) if error.is(Refusal::NoNode)) {
            // The servers have lost their data since this worker has started.
            self.begin().await?;
        }
        let failed = |error| Error::at(directory.as_str(), server.id, error);
        Plans::new(directory, &children.map_err(failed)?)
    }
}

/// True if the leader reads the plans again after this error. Otherwise it resigns.
fn may_plan_again(error: &Error) -> bool {
    use Refusal::{NoNode, NodeExists, ReadOnly, Throttled};
    let refused = matches!(
        refusal(error),
        Some(NoNode | NodeExists | Throttled | ReadOnly)
    );
    refused || matches!(error, Error::OutcomeUnknown { .. })
}

/// How long the leader rests before its next look.
fn rest(took: Duration, has_deferred: bool) -> Duration {
    match has_deferred {
        true => INTERVAL,
        false => INTERVAL.max((took * REST).min(LONGEST_REST)),
    }
}

impl Desk {
    /// Waits until a part of the state has changed. False if the session is closed.
    ///
    /// After a reconnect the plans must be read again, because an older backup can have others.
    async fn changed(
        &mut self,
        reconnects: &mut (impl Stream<Item = SessionState> + Unpin),
    ) -> bool {
        tokio::select! {
            biased;
            Some(_) = reconnects.next() => {
                self.plans = None;
                true
            }
            changed = self.workers.changed() => changed.is_ok(),
            changed = self.state.changed() => changed.is_ok(),
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/leader.rs"]
mod tests;
