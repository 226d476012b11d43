//! What must be true once things have ceased to go wrong.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use zookeeper_recipes_assignment::{AssignmentOperator, Owner, Plan, PlannedWorker, Routing, plan};

use super::fleet::{Fleet, PATH};
use super::traits::PARTITIONS;
use super::worker::LONGEST_BLOCK;
use crate::findings::Findings;
use crate::lasting_faults::LastingFaults;
use crate::process;
use crate::run::settles;

/// The least time between two plans.
const PLAN_INTERVAL: Duration = Duration::from_millis(100);

/// The longest pause of a worker whose work has returned early.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Fleet<'_> {
    /// Judges the fleet from the beginning of the quiet on, and ends it.
    pub(crate) async fn judge(&self) {
        let ledger = &*self.setting.ledger;
        sleep_until(self.setting.quiet_from + self.setting.schedule.mends_within()).await;
        if self.traits.hangs.is_some() {
            self.stops_no_other().await;
            self.hung.send_replace(false);
            // Work that blocks does not return before.
            sleep(self.times.move_within * 2).await;
        }
        let patience = self.owned_within();
        settles(ledger, patience, || self.without_owner(patience)).await;
        self.comes_to_rest().await;
        self.is_shown().await;
        if self.workers.len() > 1 && self.setting.schedule.lasting.is_none() && self.is_clean() {
            self.survives_a_death().await;
        }
        self.ends.send_replace(true);
    }

    /// While a worker hangs, all partitions are owned, and a drain comes to its end.
    async fn stops_no_other(&self) {
        let Some((hung, _)) = &self.traits.hangs else {
            return;
        };
        let late = self.times.move_within * 6;
        let patience = self.moved_within() + late;
        settles(&self.setting.ledger, patience, || {
            let mut findings = self.without_owner(patience);
            let (owners, workers) = (self.owners(), &self.traits.workers);
            let is_drained = |it: &&String| workers.get(*it).is_some_and(|it| it.drained);
            let mut drained = owners.values().filter(|it| *it != hung).filter(is_drained);
            if let Some(drained) = drained.next() {
                let text = format!("{drained} owns some after {patience:?}: {owners:?}");
                findings.push(("a worker that hangs stops no drain of another one", text));
            }
            findings
        })
        .await;
    }

    /// How long it takes at most until all partitions are owned, after the last fault has mended.
    ///
    /// A worker whose session is over opens another, as each contender does. The grace of a worker
    /// that has vanished may begin again under another leader. Work that has returned early begins
    /// again after a pause.
    fn owned_within(&self) -> Duration {
        let times = &self.times;
        let planned = (times.grace + PLAN_INTERVAL) * 2 + times.warm;
        self.setting.schedule.comes_through_within() * 2 + planned + LONGEST_PAUSE + LONGEST_BLOCK
    }

    /// How long all moves take at most, one after the other.
    fn moved_within(&self) -> Duration {
        let times = &self.times;
        let one = PLAN_INTERVAL * 2
            + times.warm
            + times.move_within
            + times.drain_at_most
            + self.setting.schedule.hands_on_within();
        self.owned_within() + one * (2 * PARTITIONS.len()) as u32
    }

    /// How long nobody owns a partition whose worker dies, as the crate's documentation states it.
    fn owned_after_a_death(&self) -> Duration {
        let (schedule, times) = (&self.setting.schedule, &self.times);
        let options = &schedule.options;
        let session = options.session_timeout + options.tick * 2;
        let drift = session * options.clock_drift / 1_000_000;
        session
            + drift
            + times.grace
            + PLAN_INTERVAL * 2
            + times.warm
            + schedule.hands_on_within()
            + schedule.learns_within()
    }

    fn without_owner(&self, patience: Duration) -> Findings {
        let owners = self.owners();
        let mut none = PARTITIONS.to_vec();
        none.retain(|it| !owners.contains_key(it));
        match none.is_empty() {
            true => Findings::new(),
            false => vec![(
                "each partition is owned once things have ceased to go wrong",
                format!("nobody owns {none:?} after {patience:?}: {owners:?}"),
            )],
        }
    }

    /// A worker that is far away may have a session that lasts, and counts if it owns anything.
    fn unbalanced(&self) -> Findings {
        let owners: Plan = self
            .owners()
            .into_iter()
            .map(|(it, owner)| (it.to_owned(), owner))
            .collect();
        let far = self
            .setting
            .schedule
            .lasting
            .iter()
            .flat_map(LastingFaults::far_away);
        let far = far.filter(|far| owners.values().any(|owner| owner == far));
        let mut workers = self.traits.workers.clone();
        workers.extend(far.map(|far| (far, PlannedWorker::default())));
        // The plan of a balanced fleet is that fleet.
        let planned = plan(&self.traits.partitions, &workers, &owners);
        match planned == owners {
            true => Findings::new(),
            false => vec![(
                "the partitions are balanced",
                format!("{owners:?}, and the plan is {planned:?}"),
            )],
        }
    }

    /// The partitions are balanced, and then no work begins or ends for a session timeout.
    async fn comes_to_rest(&self) {
        let last = Instant::now() + self.moved_within();
        loop {
            let stirs = self.stirs.load(Ordering::Relaxed);
            sleep(self.setting.schedule.options.session_timeout).await;
            let stirred = self.stirs.load(Ordering::Relaxed) - stirs;
            let unbalanced = self.unbalanced();
            if (stirred == 0 && unbalanced.is_empty()) || !self.is_clean() {
                return;
            }
            if Instant::now() >= last {
                let text = format!("{stirred} in a session timeout; {unbalanced:?}");
                let promise = "moves come to rest, and the partitions are balanced";
                return self.setting.violated(promise, text);
            }
        }
    }

    /// The routing shows each owner.
    async fn is_shown(&self) {
        let process = self.setting.simulation.process("router");
        let session = process::open(&self.setting, &process).await;
        let operator = AssignmentOperator::new(&session, PATH).expect("a good path");
        match operator.routing().await {
            Ok(routing) => {
                let wrong = || {
                    let (shown, owners) = (shown(&routing.borrow()), self.owners());
                    let is_so = shown.iter().map(|(id, worker)| (&**id, worker));
                    match is_so.eq(owners.iter().map(|(id, worker)| (*id, worker))) {
                        true => Findings::new(),
                        false => vec![(
                            "the routing shows each owner",
                            format!("{shown:?}, and the owners are {owners:?}"),
                        )],
                    }
                };
                let patience = self.setting.schedule.comes_through_within();
                settles(&self.setting.ledger, patience, wrong).await;
            }
            Err(error) => {
                let text = format!("{error:?}");
                self.setting.violated("the routing can be read", text);
            }
        }
        session.close().await;
    }

    /// A worker dies while nothing else goes wrong. Others own its partitions in time.
    async fn survives_a_death(&self) {
        let bound = self.owned_after_a_death();
        let dead = &self.workers[0];
        self.remark(format!("{dead} dies while nothing else goes wrong"));
        self.dies.send_replace(Some(dead.clone()));
        let began = Instant::now();
        let owns = |owner: &String| owner != dead;
        let owned = || {
            let owners = self.owners();
            owners.len() == PARTITIONS.len() && owners.values().all(owns)
        };
        while !owned() {
            if began.elapsed() > bound {
                let text = format!("after {bound:?}: {:?}", self.owners());
                let promise = "the partitions of a dead worker are owned within the stated bound";
                return self.setting.violated(promise, text);
            }
            sleep(Duration::from_millis(10)).await;
        }
        self.setting.ledger.count_share(began.elapsed(), bound);
    }

    /// All workers have ended: nothing remains of them.
    pub(crate) async fn leaves_nothing(&self) {
        let ledger = &*self.setting.ledger;
        settles(ledger, self.setting.schedule.waits_at_most(), || {
            let tree = self.setting.simulation.administrator().tree().into_iter();
            let left = tree.filter(|node| node.stat.ephemeral_owner != 0);
            let left: Vec<String> = left.map(|node| node.path).collect();
            let mut findings = Findings::new();
            // Tasks of a process that was killed remain for ever.
            let sessions = self.setting.simulation.administrator().sessions();
            if !sessions.is_empty() {
                findings.push(("no session remains", format!("{sessions:?}")));
            }
            if !left.is_empty() {
                findings.push(("no znode remains", format!("{left:?}")));
            }
            findings
        })
        .await;
    }
}

/// The worker of each partition that the routing shows.
fn shown(routing: &Routing) -> BTreeMap<String, String> {
    let worker = |(id, owner): (&String, &Owner)| (id.clone(), owner.worker.clone());
    routing.iter().map(worker).collect()
}
