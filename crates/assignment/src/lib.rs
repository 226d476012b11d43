//! Partitions assigned to workers on ZooKeeper: each partition has at most one owner at a time.
//!
//! An [`Assignment`] divides partitions among the workers that are there: shards, tenants, queues.
//! Workers come and go, and the partitions follow, balanced and with few moves.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod assignment;
mod children;
mod events;
mod kept;
mod layout;
mod leader;
mod member;
mod next_plans;
mod operator;
mod options;
mod own_plan;
mod owned;
mod partition;
mod partitions;
mod pieces;
mod plan;
mod plans;
mod publisher;
mod recorded;
mod retry;
mod routing;
mod run;
mod slots;
mod status;
mod worker;

pub use assignment::Assignment;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use events::describe_metrics;
pub use operator::AssignmentOperator;
pub use options::AssignmentOptions;
pub use owned::Owner;
pub use partition::Partition;
pub use partitions::Partitions;
pub use plan::{Moves, Plan, PlannedPartition, PlannedWorker, plan};
pub use routing::Routing;
pub use status::{AssignmentStatus, PartitionStatus, WorkerStatus};
pub use zookeeper_recipes_core::{
    self as common, Acl, AuthId, ConnectOptions, Ended, Error, ErrorKind, FencingToken,
    GuardedTransaction, HoldView, InvalidInput, NodePath, Permission, Refusal, Session, SessionId,
};
