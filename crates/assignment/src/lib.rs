#![doc = include_str!("../README.md")]
#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-assignment/latest")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod assignment;
mod balance;
mod children;
mod events;
mod kept;
mod layout;
mod leader;
mod member;
mod names;
mod next_plans;
mod operator;
mod options;
mod orders;
mod owned;
mod partition;
mod partitions;
mod patience;
mod pieces;
mod plan;
mod planner;
mod plans;
mod publisher;
mod recorded;
mod retry;
mod run;
mod running;
mod sessions;
mod slots;
mod state;
mod status;
mod task;
mod window;
mod work;
mod worker;

/// Pages about the assignment as a whole.
pub mod docs {
    #[doc = include_str!("docs/balance.md")]
    pub mod balance {}
    #[doc = include_str!("docs/limits.md")]
    pub mod limits {}
    #[doc = include_str!("docs/moves.md")]
    pub mod moves {}
}

pub use assignment::Assignment;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use events::describe_metrics;
pub use operator::AssignmentOperator;
pub use options::AssignmentOptions;
pub use owned::{Owner, Routing};
pub use partition::Partition;
pub use partitions::Partitions;
pub use plan::{Plan, PlannedPartition, PlannedWorker, plan};
pub use status::{AssignmentStatus, PartitionStatus, WorkerStatus};
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use zookeeper_recipes_core::TlsOptions;
pub use zookeeper_recipes_core::{
    self as common, Acl, AuthId, ConnectOptions, Ended, Error, ErrorKind, FencingToken,
    GuardedTransaction, HoldView, InvalidInput, NodePath, Permission, Refusal, Session, SessionId,
};
