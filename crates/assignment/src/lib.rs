//! Partitions assigned to workers on ZooKeeper: each partition has at most one owner at a time.
//!
//! An [`Assignment`] divides partitions among the workers that are there: shards, tenants, queues.
//! Workers come and go, and the partitions follow, balanced and with few moves.
//!
//! ```
//! use zookeeper_recipes_assignment::{Assignment, Partition, Partitions, Session};
//!
//! # async fn store(_: FencingToken) {}
//! # use zookeeper_recipes_assignment::FencingToken;
//! async fn consume(owned: Partition) -> std::io::Result<()> {
//!     while !owned.is_draining() {
//!         // One piece of the work. The store refuses an older token.
//!         store(owned.fencing_token()).await;
//!         # owned.draining().await;
//!     }
//!     Ok(())
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(connect_string).await?;
//! # session };
//! # let shutdown = std::future::ready(());
//! let queues = Partitions::numbered(64);
//! let assignment = Assignment::new(&session, "/app/queues", queues, "worker-7")?;
//! assignment.run(shutdown, consume).await?;
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | work on what the plan gives to this worker | [`Assignment::run`] |
//! | see which worker owns each partition, to route requests | [`AssignmentOperator::routing`] |
//! | add, remove or split partitions while the workers run | [`AssignmentOperator::set_partitions`] |
//! | drain a worker, pin a partition, freeze the plan, see the state | [`AssignmentOperator`] |
//! | plan in a way of your own | [`plan`] |
//!
//! # How it works
//!
//! 1. Each worker is a member of a group, campaigns in an election, and watches its own plan.
//! 2. The worker that leads looks at the workers, at what each owns, at the partitions and at the
//!    orders. From these it computes the plan of each worker. The plan is sticky: few moves balance
//!    it, to within one partition, or by weights and capacities. Each move lowers a potential, so
//!    the moves [come to rest](docs::balance).
//! 3. The leader writes the plans in a transaction that checks its own znode. So the servers refuse
//!    the plan of a former leader.
//! 4. A worker acquires the lock of each partition that its plan gives to it. Under the hold it
//!    publishes itself as the owner, and works.
//!
//! The plan follows from the state, and not from events. A thousand events within 100 ms lead to one
//! plan, and a leader that begins needs no history.
//!
//! [`docs::moves`] shows the steps of a move, and what happens to one that makes no progress.
//! [`docs::limits`] has the limits and the costs.
//!
//! # What it promises
//!
//! * Never two owners: [`Partition::is_held`] returns false before another worker can own the
//!   partition, as for every [hold](common::Hold). This rests on the lock of the partition alone.
//!   With two leaders, an old plan or no plan, partitions wait or move, and none has two owners.
//! * Each later owner of a partition has a larger [fencing token](Partition::fencing_token).
//! * A worker that leaves moves only its own partitions. A worker that comes takes only its share.
//!   In a rolling restart each partition moves away and back; within a
//!   [grace](AssignmentOptions::grace) none moves.
//! * A plan that is missing or cannot be read changes nothing.
//! * While a worker lives and the servers answer, each partition is owned again in bounded time:
//!
//! | after | nobody owns the partition for at most |
//! |---|---|
//! | the death of its worker, or of the leader, or of both | the session timeout, two ticks of the servers, the grace, 200 ms for two plans, a few round trips |
//! | a worker that ends by `shutdown` | the handoff; with a grace, the grace |
//! | a move | the handoff. If the next owner dies in that moment: the first row |
//! | the first row, and the next owner does not acquire | [`move_within`](AssignmentOptions::move_within) more, or five times as long if that worker acquires others meanwhile |
//! | work that returned early | the pause before it begins again, at most 10 s |
//!
//! Add the time of [`warm`](AssignmentOptions::warm) to the first row.
//!
//! # What it does not promise
//!
//! * It does not stop a paused process from writing late. The pause can come between a look at
//!   [`is_held`](Partition::is_held) and the write. Let the store refuse an older
//!   [fencing token](Partition::fencing_token), or use [guarded writes](HoldView::transaction).
//! * It does not notice work that owns its partition and does nothing. Work that blocks the only
//!   thread of a `current_thread` runtime stops all work of that worker: see [`Assignment::run`].
//! * The [routing](Routing) is no proof. It shows what the workers have published.
//! * It does not find the best balance for unequal weights: see [`docs::balance`].
//! * If more than 32 pieces of plans change, of 4 KiB each, the leader writes several transactions.
//!   A leader that dies between two of them leaves a plan of which a part is old, and the next
//!   leader completes it.
//! * A worker does not watch the record of what it owns, because exclusion rests on the locks and
//!   not on this record. If another program writes there, the leader plans by that, and may set a
//!   healthy worker aside, until the worker writes the record again or reconnects.
//!
//! Events and metrics: see [`common::docs::events`].

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-assignment/latest")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod assignment;
mod balance;
mod children;
pub mod docs;
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
