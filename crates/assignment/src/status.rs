//! The state of an assignment at one moment, for operators.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Error, NodePath, Refusal};

use crate::children::{Children, read_children};
use crate::kept::{keep, known};
use crate::layout::{FREEZE, Layout};
use crate::member;
use crate::next_plans::OWN;
use crate::operator::AssignmentOperator;
use crate::owned::{Owner, owners};
use crate::plan::PlannedPartition;
use crate::plans::Plans;
use crate::recorded::{self, Recorded, unreadable};
use crate::retry::repeat;
use crate::state::StateOf;

/// What changes within this time leads to one new value of a status that is watched.
const INTERVAL: Duration = Duration::from_millis(50);

/// The state of an assignment, as [`status`](AssignmentOperator::status) reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignmentStatus {
    /// The partitions, in the order of their names.
    pub partitions: Vec<PartitionStatus>,
    /// The workers that are there, have a plan or an order, in the order of their ids.
    pub workers: Vec<WorkerStatus>,
    /// True if no partition moves: see [`freeze`](AssignmentOperator::freeze).
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
    /// The worker that an operator has [pinned](AssignmentOperator::pin) it to.
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
    /// True if an operator [drains](AssignmentOperator::drain) it.
    pub drained: bool,
    /// True if the leader has set it aside, because a move made no progress: see
    /// [`move_within`](crate::AssignmentOptions::move_within).
    pub set_aside: bool,
    /// The number of partitions that it owns.
    pub owned: usize,
    /// The number of partitions that it should own, by the plan.
    pub planned: usize,
}

/// The directories that a status is made of.
fn directories(layout: &Layout) -> [&NodePath; 6] {
    [
        &layout.workers,
        &layout.owned,
        &layout.plan,
        &layout.orders,
        &layout.drains,
        &layout.pins,
    ]
}

impl AssignmentOperator {
    /// Reads who owns what, what moves, and what is ordered.
    ///
    /// The parts are read one after the other, so they may show different moments.
    ///
    /// # Errors
    ///
    /// Also [`Error::InvalidInput`] if a record is of another version, or has a line that cannot be
    /// read.
    pub async fn status(&self) -> Result<AssignmentStatus, Error> {
        let layout = &self.layout;
        let read = async |server: Arc<ServerSession>| {
            let failed = |error| Error::at(layout.base.as_str(), server.id, error);
            let mut children = Vec::new();
            for directory in directories(layout) {
                children.push(match read_children(&server, directory).await {
                    Err(error) if error.is(Refusal::NoNode) => Children::new(),
                    read => read.map_err(failed)?,
                });
            }
            let recorded = recorded::read(&server, &layout.partitions).await;
            let recorded = recorded.map_err(failed)?.recorded;
            if let Recorded::Unreadable(path, problem) = &recorded {
                return Err(unreadable(path, problem));
            }
            let plans = Plans::new(&layout.plan, &children[2])?;
            Ok(Some(status(&children, &plans, &recorded)))
        };
        repeat(&self.session, &layout.base, read).await
    }

    /// Watches what [`status`](Self::status) reads, as [`routing`](Self::routing) does.
    ///
    /// A record that cannot be read counts as missing. It panics outside a tokio runtime.
    pub async fn watch_status(&self) -> Result<watch::Receiver<AssignmentStatus>, Error> {
        let (session, layout) = (&self.session, &self.layout);
        let state = StateOf::new(directories(layout), &layout.partitions);
        let plan = layout.plan.clone();
        let kept = keep(session, state, INTERVAL, move |(children, recorded)| {
            let plans = Plans::new(&plan, &children[2]).unwrap_or_else(|_| Plans::none(&plan));
            status(&children, &plans, &recorded)
        });
        known(session, &layout.base, kept).await
    }
}

/// The status, by the children of the [`directories`].
fn status(children: &[Children], plans: &Plans, recorded: &Recorded) -> AssignmentStatus {
    let [members, owned, _, orders, drains, pins] = children else {
        return AssignmentStatus::default();
    };
    let partitions = match recorded {
        Recorded::Found(partitions) => partitions.planned().clone(),
        Recorded::Missing | Recorded::Unreadable(..) => Default::default(),
    };
    let (owners, plans) = (owners(owned), plans.all());
    let mut planned: BTreeMap<&String, &String> = BTreeMap::new();
    for (worker, plan) in &plans {
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
        let (address, about) = member::parse(member.map(|data| &**data).unwrap_or_default());
        WorkerStatus {
            id: id.clone(),
            is_there: member.is_some(),
            address,
            capacity: about.capacity,
            zone: about.zone,
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
