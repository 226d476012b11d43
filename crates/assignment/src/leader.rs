//! The leader: it plans which worker should own which partition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::{Backoff, Error, Refusal, ServerError, Session};
use zookeeper_recipes_election::Term;
use zookeeper_recipes_group::{Group, GroupState};

use crate::children::{Children, ChildrenOf};
use crate::events::Reporter;
use crate::kept::{Kept, keep};
use crate::layout::{FREEZE, Layout};
use crate::member::MemberData;
use crate::next_plans::{OWN, View};
use crate::options::AssignmentOptions;
use crate::owned;
use crate::plans::{NotRead, Plans};
use crate::recorded::{RecordAt, Recorded};

/// A look at the state is followed by a rest, which is so many times longer at least, unless moves
/// wait for their turn.
///
/// A look at 100,000 partitions takes about a second of the processor. While workers acquire what
/// they are planned with, each look finds a change.
const REST: u32 = 4;

/// The longest rest. If the process was paused during a look, the look has taken long, too.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// 100 years. A longer grace is this one, because no clock may overflow by it.
const LONGEST_GRACE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// What a worker needs to lead.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    pub(crate) session: Session,
    pub(crate) layout: Layout,
    pub(crate) group: Group,
    pub(crate) options: AssignmentOptions,
    pub(crate) reporter: Reporter,
}

/// What the leader watches.
struct Watched {
    workers: watch::Receiver<GroupState>,
    owned: Kept<Children>,
    orders: Kept<Children>,
    drains: Kept<Children>,
    pins: Kept<Children>,
    partitions: Kept<Recorded>,
}

/// What a look at the state has found.
#[derive(Default)]
struct Look {
    /// When the first grace ends.
    grace_ends: Option<Instant>,
    /// True if a partition is not where it should be.
    unsettled: bool,
    /// True if moves wait, because enough partitions move already.
    has_deferred: bool,
    /// How long the computation took, without the writes.
    took: Duration,
}

impl Look {
    /// How long the leader rests before its next look.
    fn rest(&self, least: Duration) -> Duration {
        match self.has_deferred {
            true => least,
            false => least.max((self.took * REST).min(LONGEST_REST)),
        }
    }
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
        let mut gone: BTreeMap<String, Instant> = BTreeMap::new();
        let mut plans: Option<Plans> = None;
        let mut backoff = Backoff::default();
        loop {
            let look = match self.plan(&term, &mut watched, &mut plans, &mut gone).await {
                Ok(look) => look,
                Err(NoPlan::Again(error)) => {
                    self.reporter.planning_again(&error);
                    plans = None;
                    backoff.wait().await;
                    continue;
                }
                Err(NoPlan::Resign(error)) => {
                    self.reporter.not_planned(&error);
                    return Ok(());
                }
            };
            backoff = Backoff::default();
            sleep(look.rest(self.options.plan_interval)).await;
            let ends = look.grace_ends;
            let until = ends.map(|end| end.saturating_duration_since(Instant::now()));
            // Somebody may have deleted a plan that a worker has not read yet.
            let recheck = self.session.timeout().filter(|_| look.unsettled);
            let wait = [until, recheck].into_iter().flatten().min();
            let changed = watched.changed();
            let waited = match wait {
                None => Ok(changed.await),
                Some(wait) => timeout(wait, changed).await,
            };
            match waited {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) => plans = None,
            }
        }
    }

    fn watch(&self) -> Watched {
        let layout = &self.layout;
        let children = |directory| keep(&self.session, ChildrenOf::new(directory));
        Watched {
            workers: self.group.watch(),
            owned: children(&layout.owned),
            orders: children(&layout.orders),
            drains: children(&layout.drains),
            pins: children(&layout.pins),
            partitions: keep(&self.session, RecordAt::new(&layout.partitions)),
        }
    }

    /// Looks at the state, and writes the plans that follow from it.
    async fn plan(
        &self,
        term: &Term,
        watched: &mut Watched,
        plans: &mut Option<Plans>,
        gone: &mut BTreeMap<String, Instant>,
    ) -> Result<Look, NoPlan> {
        let present = match plans {
            Some(present) => present,
            None => plans.insert(self.read().await?),
        };
        let began = Instant::now();
        let Some(mut view) = watched.view() else {
            return Ok(Look::default());
        };
        view.plans = present.lines();
        view.max_moves = self.options.max_moves;
        let grace_ends = self.await_the_gone(&mut view, gone);
        let next = view.next();
        let look = Look {
            grace_ends,
            unsettled: next.unsettled > 0,
            has_deferred: next.deferred > 0,
            took: began.elapsed(),
        };
        let written = present.write(term, &self.options.acl, next.plans).await;
        let written = written.map_err(|error| match error {
            Error::OutcomeUnknown { .. } => NoPlan::Again(error),
            Error::Refused {
                refusal:
                    Refusal::NoNode | Refusal::NodeExists | Refusal::Throttled | Refusal::ReadOnly,
                ..
            } => NoPlan::Again(error),
            error => NoPlan::Resign(error),
        })?;
        if written > 0 {
            self.reporter.planned(&next.moves, next.deferred);
        }
        Ok(look)
    }

    async fn read(&self) -> Result<Plans, NoPlan> {
        let directory = &self.layout.plan;
        let server = self
            .session
            .server(directory)
            .await
            .map_err(NoPlan::Resign)?;
        Plans::read(&*server, directory)
            .await
            .map_err(|error| match error {
                NotRead::OtherVersion(path, problem) => {
                    NoPlan::Resign(crate::recorded::unreadable(&path, &problem))
                }
                NotRead::Server(error @ ServerError::Refused(_)) => {
                    NoPlan::Resign(Error::at(directory.as_str(), server.id(), error))
                }
                NotRead::Server(error) => {
                    NoPlan::Again(Error::at(directory.as_str(), server.id(), error))
                }
            })
    }

    /// Notes the workers that have vanished, and lets them keep their partitions for the grace.
    ///
    /// Returns when the first grace ends.
    fn await_the_gone(
        &self,
        view: &mut View,
        gone: &mut BTreeMap<String, Instant>,
    ) -> Option<Instant> {
        let has_left = |worker: &str| !view.workers.contains_key(worker);
        let planned = view
            .plans
            .iter()
            .filter(|(worker, lines)| has_left(worker) && lines.values().any(|word| word == OWN));
        let left: BTreeSet<String> = planned.map(|(worker, _)| worker.clone()).collect();
        let now = Instant::now();
        gone.retain(|worker, _| left.contains(worker));
        for worker in left {
            let grace = self.options.grace.min(LONGEST_GRACE);
            gone.entry(worker).or_insert(now + grace);
        }
        let awaited = gone.iter().filter(|(_, end)| **end > now);
        view.awaited = awaited.clone().map(|(worker, _)| worker.clone()).collect();
        awaited.map(|(_, end)| *end).min()
    }
}

impl Watched {
    /// The state now. `None` if a part of it is not known yet.
    fn view(&mut self) -> Option<View> {
        let workers = self.workers.borrow_and_update().clone();
        let owned = self.owned.borrow_and_update().clone()?;
        let orders = self.orders.borrow_and_update().clone()?;
        let drains = self.drains.borrow_and_update().clone()?;
        let pins = self.pins.borrow_and_update().clone()?;
        let partitions = self.partitions.borrow_and_update().clone()?;
        let GroupState::Members(members) = workers else {
            return None;
        };
        let Recorded::Partitions(partitions) = &*partitions else {
            return None;
        };
        let workers = members.into_iter().map(|member| {
            let is_drained = drains.contains_key(&member.name);
            let planned = MemberData::parse(&member.data).planned(is_drained);
            (member.name, planned)
        });
        let pin = |(partition, worker): (&String, &Arc<[u8]>)| {
            (
                partition.clone(),
                String::from_utf8_lossy(worker).trim().to_owned(),
            )
        };
        let owners = owned::owners(&owned).into_iter();
        let owner = |(partition, owner): (String, owned::Owner)| {
            (partition, (owner.worker, owner.fencing_token.get()))
        };
        Some(View {
            partitions: partitions.planned().clone(),
            workers: workers.collect(),
            owned: owners.map(owner).collect(),
            pins: pins.iter().map(pin).collect(),
            frozen: orders.contains_key(FREEZE),
            ..View::default()
        })
    }

    /// Waits until a part of the state has changed. False if the session is closed.
    async fn changed(&mut self) -> bool {
        let changed = tokio::select! {
            biased;
            changed = self.workers.changed() => changed,
            changed = self.owned.changed() => changed,
            changed = self.orders.changed() => changed,
            changed = self.drains.changed() => changed,
            changed = self.pins.changed() => changed,
            changed = self.partitions.changed() => changed,
        };
        changed.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);

    #[test]
    fn leader_computes_for_at_most_a_fifth_of_its_time_unless_moves_wait() {
        let look = |took| Look {
            took,
            ..Look::default()
        };
        let long = look(Duration::from_secs(1));
        assert_eq!(long.rest(INTERVAL), Duration::from_secs(4));
        assert_eq!(look(Duration::from_millis(1)).rest(INTERVAL), INTERVAL);
        let moving = Look {
            has_deferred: true,
            ..long
        };
        assert_eq!(moving.rest(INTERVAL), INTERVAL, "moves wait for it");
        let paused = look(Duration::from_secs(40));
        assert_eq!(paused.rest(INTERVAL), LONGEST_REST);
    }
}
