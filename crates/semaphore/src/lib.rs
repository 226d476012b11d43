//! A semaphore on ZooKeeper.
//!
//! A [`Semaphore`] is a number of permits, over all processes that use the same path. A contender
//! acquires one permit or several, in FIFO order: a contender that wants few permits does
//! not pass a contender that wants many. Use it to limit the work of a fleet: requests to a service
//! with a quota, jobs on a shared machine, migrations of a database.
//!
//! # Example
//!
//! ```
//! use zookeeper_recipes_semaphore::{Semaphore, Session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(connect_string).await?;
//! # session };
//! let semaphore = Semaphore::new(&session, "/limits/exports", 5)?;
//!
//! let small = semaphore.acquire().await?;
//! let large = semaphore.acquire_many(3).await?;
//! assert_eq!(semaphore.available_permits().await?, 1);
//! assert!(semaphore.try_acquire_many(2).await?.is_none());
//! small.release().await?;
//! large.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The number of permits
//!
//! The directory's data is the number of permits, in decimal digits. The first contender records
//! it. [`Semaphore::resize`] changes the number for all, and [`Semaphore::recorded`] reads it.
//!
//! A contender of [`Semaphore::new`] with another number gets an error that names both numbers, and
//! no permit: one of two configurations is wrong, and no program can know which. A contender of
//! [`Semaphore::open`] takes the recorded number. Use `open` if the number is resized while workers
//! run, since a worker that starts later may be configured with the old number.
//!
//! By default the directory is a container znode. The server deletes it some time after the last
//! contender has gone, and the number with it; the next contender records its own. If a number that
//! was set by `resize` must outlast such a pause, use [`Directories::Persistent`].
//!
//! # Costs
//!
//! Each method has a table of its costs, in the words of [`Recipe`](Recipe#costs).
//!
//! # Other languages
//!
//! The names are this crate's own (`_c_<uuid>-permit-<weight>-<number>`). Do not use the path of a
//! semaphore of Curator or kazoo. Curator's takes a lock for each acquisition, and writes twice as
//! much. See [Sharing a lock with other languages](common::docs::sharing).

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-semaphore/latest")]

mod agreement;
mod recipe;
mod rule;

pub use recipe::Semaphore;
pub use rule::WithinPermits;
#[doc(inline)]
pub use zookeeper_recipes_core::QueueOptions as SemaphoreOptions;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use zookeeper_recipes_core::TlsOptions;
pub use zookeeper_recipes_core::{
    self as common, Acl, AfterSessionLoss, AuthId, ConnectOptions, Directories, Ended, Error,
    ErrorKind, FencingToken, Hold, HoldState, HoldView, InvalidInput, LossReason, NodePath,
    Permission, QueueEntry, Recipe, RecipeExt, Refusal, Session, SessionEnd, SessionHealth,
    SessionId, SessionState,
};
