//! An exclusive lock on ZooKeeper.
//!
//! One contender holds an [`ExclusiveLock`] at a time, FIFO over all processes that use the same
//! path. The znodes are those of Apache Curator's `InterProcessMutex`.
//!
//! # Example
//!
//! ```
//! use zookeeper_recipes_lock::{ExclusiveLock, Session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(connect_string).await?;
//! # session };
//! let lock = ExclusiveLock::new(&session, "/locks/report")?;
//!
//! let hold = lock.acquire().await?;
//! println!("held with token {}", hold.fencing_token());
//! hold.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Do you need one?
//!
//! A lock held over a network is never as safe as a lock within a process: its holder can be
//! paused, and lose the lock during the pause. Choose by what goes wrong if two processes do the
//! work:
//!
//! | if the work is done twice | use |
//! |---|---|
//! | nothing goes wrong, it only costs time | this lock |
//! | it does harm, and one ZooKeeper transaction or one conditional write to a database can do it | that transaction or write, and no lock |
//! | it does harm, and a store can refuse an old writer | this lock, with its [`fencing_token`](HoldView::fencing_token) in each write |
//! | it does harm, and it writes to ZooKeeper | this lock, with [guarded writes](HoldView::transaction) |
//!
//! # Four waiting strategies
//!
//! | | one release wakes | order |
//! |---|---|---|
//! | [`ExclusiveLock`], [`WaitStrategy::Predecessor`] (default) | the next contender | FIFO |
//! | [`ExclusiveLock`], [`WaitStrategy::Parent`] | every waiter, and each lists the queue | FIFO |
//! | [`ExclusiveLock`], [`WaitStrategy::Poll`] | no waiter; each lists the queue again and again | FIFO |
//! | [`SingleNodeLock`] | every waiter, and each tries to create the znode | none |
//!
//! The last three are for comparison with the first.
//!
//! # Costs
//!
//! Each method has a table of its costs, in the words of [`Recipe`](Recipe#costs).
//!
//! # Other languages
//!
//! The names are those of Curator's `InterProcessMutex` (`_c_<uuid>-lock-<number>`). Processes with
//! Curator, go-zookeeper or zookeeper-client can queue under the same path, and kazoo can if it is
//! set to look for `-lock-`. See [Sharing a lock with other languages](common::docs::sharing).

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-lock/latest")]

mod locks;
mod once_per_slot;
mod recipe;
mod rule;
mod single_node;
mod task_mutex;

pub use locks::Locks;
pub use once_per_slot::{
    Again, JobRecord, OncePerSlot, OncePerSlotOptions, Slot, SlotClaim, SlotOutcome, SlotRecord,
    SlotRun, SlotState,
};
pub use recipe::ExclusiveLock;
pub use rule::FirstInQueue;
pub use single_node::SingleNodeLock;
pub use task_mutex::{TaskGuard, TaskMutex};
#[doc(inline)]
pub use zookeeper_recipes_core::QueueOptions as LockOptions;
#[doc(inline)]
pub use zookeeper_recipes_core::QueueOptions as SingleNodeOptions;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use zookeeper_recipes_core::TlsOptions;
pub use zookeeper_recipes_core::{
    self as common, Acl, AfterSessionLoss, AuthId, ConnectOptions, Directories, Ended, Error,
    ErrorKind, FencingToken, Hold, HoldState, HoldView, InvalidInput, LossReason, NodePath,
    Permission, QueueEntry, Recipe, RecipeExt, Refusal, Session, SessionEnd, SessionHealth,
    SessionId, SessionState, WaitStrategy,
};
