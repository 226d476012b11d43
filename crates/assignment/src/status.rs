//! The state of an assignment at one moment, for operators.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Error, NodePath, Refusal, ServerError, Session};

use crate::children::Children;
use crate::kept_state::KeptState;
use crate::layout::{FREEZE, Layout};
use crate::member::MemberData;
use crate::next_plans::{OWN, WorkerPlan};
use crate::owned::{Owner, owners};
use crate::plan::PlannedPartition;
use crate::plans::{NotRead, Plans, plans_of};
use crate::recorded::{self, Recorded, unreadable};

/// What changes within this time leads to one new value of [`watch_status`].
const INTERVAL: Duration = Duration::from_millis(50);

/// The state of an assignment, as [`status`](crate::AssignmentOperator::status) reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignmentStatus {
    /// The partitions, in the order of their names.
    pub partitions: Vec<PartitionStatus>,
    /// The workers that are there, have a plan or an order, in the order of their ids.
    pub workers: Vec<WorkerStatus>,
    /// True if no partition moves: see [`freeze`](crate::AssignmentOperator::freeze).
    pub frozen: bool,
}

/// A partition of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionStatus {
    /// The name of the partition.
    pub id: String,
    /// Its share of the load.
    pub weight: u32,
    /// Who owns it.
    pub owner: Option<Owner>,
    /// The worker that should own it, by the plan.
    pub planned: Option<String>,
    /// The worker that an operator has [pinned](crate::AssignmentOperator::pin) it to.
    pub pinned: Option<String>,
}

impl PartitionStatus {
    /// True if another worker should own it, or nobody owns it.
    pub fn moves(&self) -> bool {
        self.owner.as_ref().map(|owner| &owner.worker) != self.planned.as_ref()
    }
}

/// A worker of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// The id of the worker.
    pub id: String,
    /// True if the worker is in the group of the workers.
    pub is_there: bool,
    /// Its address.
    pub address: String,
    /// How much it takes in proportion to the other workers.
    pub capacity: u32,
    /// The zone that it is in.
    pub zone: Option<String>,
    /// True if an operator [drains](crate::AssignmentOperator::drain) it.
    pub drained: bool,
    /// True if the leader has set it aside, because a move made no progress: see
    /// [`move_within`](crate::AssignmentOptions::move_within).
    pub set_aside: bool,
    /// The number of partitions that it owns.
    pub owned: usize,
    /// The number of partitions that it should own, by the plan.
    pub planned: usize,
}

/// Reads the state.
pub(crate) async fn read_status(
    server: &dyn ServerSession,
    layout: &Layout,
) -> Result<AssignmentStatus, Error> {
    let failed = |error| Error::at(layout.base.as_str(), server.id(), error);
    let read = async |directory: &NodePath| read_children(server, directory).await.map_err(failed);
    let members = read(&layout.workers).await?;
    let owned = read(&layout.owned).await?;
    let orders = read(&layout.orders).await?;
    let drains = read(&layout.drains).await?;
    let pins = read(&layout.pins).await?;
    let partitions = match recorded::read(server, &layout.partitions).await {
        Ok(record) => match record.recorded {
            Recorded::Partitions(partitions) => partitions.planned().clone(),
            Recorded::Nothing => Arc::default(),
            Recorded::Unreadable(path, problem) => return Err(unreadable(&path, &problem)),
        },
        Err(error) if error.is(Refusal::NoNode) => Arc::default(),
        Err(error) => return Err(failed(error)),
    };
    let plans = match Plans::read(server, &layout.plan).await {
        Ok(plans) => plans.all(),
        Err(NotRead::Server(error)) if error.is(Refusal::NoNode) => BTreeMap::new(),
        Err(NotRead::Server(error)) => return Err(failed(error)),
        Err(NotRead::OtherVersion(path, problem)) => return Err(unreadable(&path, &problem)),
    };
    let parts = Parts {
        members: &members,
        owned: &owned,
        orders: &orders,
        drains: &drains,
        pins: &pins,
        partitions: &partitions,
        plans: &plans,
    };
    Ok(parts.status())
}

/// Watches the state, by a task that ends with the last receiver.
pub(crate) async fn watch_status(
    session: &Session,
    layout: &Layout,
) -> Result<watch::Receiver<AssignmentStatus>, Error> {
    let directories = [
        &layout.workers,
        &layout.owned,
        &layout.plan,
        &layout.orders,
        &layout.drains,
        &layout.pins,
    ];
    let state = KeptState::new(session, directories, Some(&layout.partitions));
    let status = |state: &mut KeptState<6>| {
        let [members, owned, plans, orders, drains, pins] = state.children()?;
        let partitions = match &*state.record()? {
            Recorded::Partitions(partitions) => partitions.planned().clone(),
            Recorded::Nothing | Recorded::Unreadable(..) => Arc::default(),
        };
        let parts = Parts {
            members: &members,
            owned: &owned,
            orders: &orders,
            drains: &drains,
            pins: &pins,
            partitions: &partitions,
            plans: &plans_of(&plans),
        };
        Some(parts.status())
    };
    state.watch(session, &layout.base, INTERVAL, status).await
}

/// The parts that a status is made of.
struct Parts<'a> {
    members: &'a Children,
    owned: &'a Children,
    orders: &'a Children,
    drains: &'a Children,
    pins: &'a Children,
    partitions: &'a BTreeMap<String, PlannedPartition>,
    plans: &'a BTreeMap<String, WorkerPlan>,
}

impl Parts<'_> {
    fn status(self) -> AssignmentStatus {
        let Parts {
            members,
            owned,
            orders,
            drains,
            pins,
            partitions,
            plans,
        } = self;
        let owners = owners(owned);
        let mut planned: BTreeMap<&String, &String> = BTreeMap::new();
        for (worker, plan) in plans {
            let own = plan.lines.iter().filter(|(_, word)| *word == OWN);
            planned.extend(own.map(|(partition, _)| (partition, worker)));
        }
        let text = |data: &[u8]| String::from_utf8_lossy(data).trim().to_owned();
        let partition = |(id, partition): (&String, &PlannedPartition)| PartitionStatus {
            id: id.clone(),
            weight: partition.weight,
            owner: owners.get(id).cloned(),
            planned: planned.get(id).map(|worker| (*worker).clone()),
            pinned: pins.get(id).map(|worker| text(worker)),
        };
        let pinned_to: BTreeSet<String> = pins.values().map(|worker| text(worker)).collect();
        let known = members.keys().chain(plans.keys());
        let ids: BTreeSet<&String> = known.chain(drains.keys()).chain(&pinned_to).collect();
        let worker = |id: &String| {
            let member = members.get(id);
            let data = MemberData::parse(member.map(|data| &**data).unwrap_or_default());
            WorkerStatus {
                id: id.clone(),
                is_there: member.is_some(),
                address: data.address,
                capacity: data.capacity,
                zone: data.zone,
                drained: drains.contains_key(id),
                set_aside: plans.get(id).is_some_and(|plan| !plan.note.is_empty()),
                owned: owners.values().filter(|owner| owner.worker == *id).count(),
                planned: planned.values().filter(|worker| **worker == id).count(),
            }
        };
        AssignmentStatus {
            partitions: partitions.iter().map(partition).collect(),
            workers: ids.into_iter().map(worker).collect(),
            frozen: orders.contains_key(FREEZE),
        }
    }
}

/// The children of a directory, read once. Empty if there is no such directory.
async fn read_children(
    server: &dyn ServerSession,
    directory: &NodePath,
) -> Result<Children, ServerError> {
    let names = match server.list(directory.as_str()).await {
        Ok(names) if !names.is_empty() => names,
        Ok(_) => return Ok(Children::new()),
        Err(error) if error.is(Refusal::NoNode) => return Ok(Children::new()),
        Err(error) => return Err(error),
    };
    let path = |name: &String| format!("{directory}/{name}");
    let paths: Vec<String> = names.iter().map(path).collect();
    let nodes = server.get_each(&paths).await?;
    let nodes = names.into_iter().zip(nodes);
    let found = nodes.filter_map(|(name, node)| Some((name, node?.0.into())));
    Ok(found.collect())
}
