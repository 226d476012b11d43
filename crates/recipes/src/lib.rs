//! Recipes on ZooKeeper: locks, semaphores and leader election.
//!
//! Each recipe is a crate of its own; this crate re-exports all of them. A recipe uses a [`Session`]
//! and returns a [`Hold`]. The hold reports its loss before another process can acquire, and carries
//! a [`FencingToken`] by which a store can reject an old holder.
//!
//! ```
//! use zookeeper_recipes::{ExclusiveLock, Session};
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
//! # Which recipe
//!
//! | to let | use | feature, module | crate |
//! |---|---|---|---|
//! | one process at a time do the work | [`ExclusiveLock`] | [`lock`] | `zookeeper-recipes-lock` |
//! | one process at a time work on each key | [`Locks`] | [`lock`] | `zookeeper-recipes-lock` |
//! | many tasks of a process share one hold | [`TaskMutex`] | [`lock`] | `zookeeper-recipes-lock` |
//! | a fleet run a job once in each time slot | [`OncePerSlot`] | [`lock`] | `zookeeper-recipes-lock` |
//! | many processes read, or one write | [`RwLock`] | [`rwlock`] | `zookeeper-recipes-rwlock` |
//! | at most N processes work at a time | [`Semaphore`] | [`semaphore`] | `zookeeper-recipes-semaphore` |
//! | one process of a fleet lead, and another take over when it dies | [`LeaderElection`] | [`election`] | `zookeeper-recipes-election` |
//! | each process know the live members of a group | [`Group`] | [`group`] | `zookeeper-recipes-group` |
//! | a fleet spread many partitions over its workers | [`Assignment`] | [`assignment`] | `zookeeper-recipes-assignment` |
//! | an operator see every queue, its holders, and who waits for whom | [`Overview`] | [`overview`] | `zookeeper-recipes-overview` |
//! | one process hold several recipes at once | [`AllOf`] | always | this crate |
//! | code work with any recipe | [`Recipe`] | always | `zookeeper-recipes-core` |
//! | contenders follow a rule of your own | [`Rule`](common::Rule), [`Queue`](common::Queue) | always, [`common`] | `zookeeper-recipes-core` |
//!
//! If you need one recipe, depend on its crate alone: `cargo add zookeeper-recipes-lock`. If you need
//! several, depend on this crate, with their features: `cargo add zookeeper-recipes --no-default-features --features lock,election`.
//! The types are the same either way.
//!
//! # Several recipes at once
//!
//! [`AllOf`] holds all of several recipes, or none. It acquires them in the same order in every
//! process, so two processes that want the same recipes do not deadlock.
//!
//! ```
//! use std::time::Duration;
//! use zookeeper_recipes::{AllOf, ExclusiveLock, Recipe, RwLock, Session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! let account = ExclusiveLock::new(&session, "/accounts/7")?;
//! let catalogue = RwLock::new(&session, "/catalogue")?;
//! let recipes: [Box<dyn Recipe>; 2] =
//!     [Box::new(account), Box::new(catalogue.read().clone())];
//!
//! let holds = AllOf::new(recipes)?.acquire_timeout(Duration::from_secs(5)).await?;
//! assert!(holds.is_held());
//! holds.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Guide
//!
//! [The guide](common::docs) has a page for each question of a service, and begins with
//! [your first week](common::docs::first_week).
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `lock`, `rwlock`, `semaphore`, `election`, `group`, `assignment` | one recipe each |
//! | `overview` | the [`Overview`] of all queues |
//! | `full` (default) | all of these |
//! | `tls` | [encrypted connections](ConnectOptions) |
//! | `zookeeper-client` | recipes over a `zookeeper_client::Client` that your program has connected: module `adapter` |
//! | `metrics` | [counters, gauges and histograms](common::docs::events) |

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes/latest")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod all_of;

pub use self::all_of::{AllHold, AllOf};
#[cfg(feature = "zookeeper-client")]
#[cfg_attr(docsrs, doc(cfg(feature = "zookeeper-client")))]
#[doc(inline)]
pub use zookeeper_recipes_adapter as adapter;
#[cfg(feature = "assignment")]
#[doc(inline)]
pub use zookeeper_recipes_assignment as assignment;
#[cfg(feature = "assignment")]
#[doc(inline)]
pub use zookeeper_recipes_assignment::{
    Assignment, AssignmentOperator, AssignmentOptions, AssignmentStatus, Owner, Partition,
    PartitionStatus, Partitions, Routing, WorkerStatus,
};
#[doc(inline)]
pub use zookeeper_recipes_core as common;
#[cfg(feature = "tls")]
#[doc(inline)]
pub use zookeeper_recipes_core::TlsOptions;
#[doc(inline)]
pub use zookeeper_recipes_core::{
    Acl, AfterSessionLoss, AuthId, ConnectOptions, Directories, Ended, Error, ErrorKind,
    FencingToken, Hold, HoldState, HoldView, InvalidInput, LossReason, NodePath, Permission,
    QueueEntry, Recipe, RecipeExt, Refusal, Session, SessionEnd, SessionHealth, SessionId,
    SessionState, WaitStrategy,
};
#[cfg(feature = "election")]
#[doc(inline)]
pub use zookeeper_recipes_election as election;
#[cfg(feature = "election")]
#[doc(inline)]
pub use zookeeper_recipes_election::{
    ElectionHealth, ElectionOptions, Leader, LeaderElection, LeaderState, Leadership, RunError,
    StopWork, Term,
};
#[cfg(feature = "group")]
#[doc(inline)]
pub use zookeeper_recipes_group as group;
#[cfg(feature = "group")]
#[doc(inline)]
pub use zookeeper_recipes_group::{Group, GroupOptions, GroupState, Member, Membership};
#[cfg(feature = "lock")]
#[doc(inline)]
pub use zookeeper_recipes_lock as lock;
#[cfg(feature = "lock")]
#[doc(inline)]
pub use zookeeper_recipes_lock::{
    Again, ExclusiveLock, JobRecord, LockOptions, Locks, OncePerSlot, OncePerSlotOptions,
    SingleNodeLock, SingleNodeOptions, Slot, SlotClaim, SlotOutcome, SlotRecord, SlotRun,
    SlotState, TaskGuard, TaskMutex,
};
#[cfg(feature = "overview")]
#[doc(inline)]
pub use zookeeper_recipes_overview as overview;
#[cfg(feature = "overview")]
#[doc(inline)]
pub use zookeeper_recipes_overview::{
    Circle, CircleWait, ContenderState, ContenderStatus, LiveOverview, Mark, Overview, QueueKind,
    QueueStatus, SessionStatus,
};
#[cfg(feature = "rwlock")]
#[doc(inline)]
pub use zookeeper_recipes_rwlock as rwlock;
#[cfg(feature = "rwlock")]
#[doc(inline)]
pub use zookeeper_recipes_rwlock::{ReadLock, RwLock, RwLockOptions, WriteHold, WriteLock};
#[cfg(feature = "semaphore")]
#[doc(inline)]
pub use zookeeper_recipes_semaphore as semaphore;
#[cfg(feature = "semaphore")]
#[doc(inline)]
pub use zookeeper_recipes_semaphore::{Semaphore, SemaphoreOptions};
