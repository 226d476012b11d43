//! A read/write lock on ZooKeeper.
//!
//! One writer or any number of readers hold an [`RwLock`] at a time, over all processes that use
//! the same path. Readers and writers share one FIFO queue: a reader that comes after a
//! waiting writer waits behind it, so no stream of readers starves a writer. The znodes are those
//! of Apache Curator's `InterProcessReadWriteLock`; kazoo's `ReadLock` and `WriteLock` can use the
//! same path.
//!
//! Use it if readers hold for long and writers are rare. If the work takes no longer than a few
//! round trips, an exclusive lock is faster.
//!
//! # Example
//!
//! ```
//! use zookeeper_recipes_rwlock::{RwLock, Session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(connect_string).await?;
//! # session };
//! let lock = RwLock::new(&session, "/locks/catalogue")?;
//!
//! let one = lock.read().acquire().await?;
//! let another = lock.read().acquire().await?;
//! assert!(lock.write().try_acquire().await?.is_none());
//! one.release().await?;
//! another.release().await?;
//!
//! let writing = lock.write().acquire().await?;
//! // Other readers hold from here on. No writer holds in between.
//! let reading = writing.downgrade().await?;
//! reading.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Who waits on whom
//!
//! | | holds when | watches |
//! |---|---|---|
//! | reader ([`ReadOrWrite::Read`]) | no writer is before it | the last writer before it |
//! | writer ([`ReadOrWrite::Write`]) | no contender is before it | its predecessor |
//!
//! A writer's release wakes the readers up to the next writer, each of them once. A reader's
//! release wakes no reader. For comparison, [`RwLockOptions::strategy`] offers ways that wake every
//! waiter, or none ([`WaitStrategy`]).
//!
//! # Fencing tokens, with readers
//!
//! Tokens grow in the order of the queue. A store that refuses old holders remembers the newest
//! *writer's* token, and refuses a reader or a writer with an older one. It must not remember
//! readers' tokens: of two readers that hold together, neither is stale.
//!
//! # Costs
//!
//! Each method has a table of its costs, in the words of [`Recipe`](Recipe#costs).
//!
//! # Other languages
//!
//! The names are those of Curator's `InterProcessReadWriteLock` (`_c_<uuid>-__READ__<number>` and
//! `_c_<uuid>-__WRIT__<number>`). Contenders with kazoo's names
//! (`<32 hex digits>__rlock__<number>` and `<32 hex digits>__lock__<number>`) count as well. Do not
//! use the path of another recipe: this lock does not count an exclusive lock's contenders. See
//! [Sharing a lock with other languages](common::docs::sharing).

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-rwlock/latest")]

mod hold;
mod recipe;
mod rule;

pub use hold::WriteHold;
pub use recipe::{ReadLock, RwLock, WriteLock};
pub use rule::ReadOrWrite;
#[doc(inline)]
pub use zookeeper_recipes_core::QueueOptions as RwLockOptions;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use zookeeper_recipes_core::TlsOptions;
pub use zookeeper_recipes_core::{
    self as common, Acl, AfterSessionLoss, AuthId, ConnectOptions, Directories, Ended, Error,
    ErrorKind, FencingToken, Hold, HoldState, HoldView, InvalidInput, LossReason, NodePath,
    Permission, QueueEntry, Recipe, RecipeExt, Refusal, Session, SessionEnd, SessionHealth,
    SessionId, SessionState, WaitStrategy,
};
