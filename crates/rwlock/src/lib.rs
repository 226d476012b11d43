//! A read/write lock on ZooKeeper.
//!
//! [`RwLock`] is held by one writer or by any number of readers, over all the processes that
//! use the same path. Readers and writers stand in one queue, in the order of arrival: a reader
//! that comes after a waiting writer waits behind it, so that no stream of readers starves a
//! writer. It is Apache Curator's `InterProcessReadWriteLock` on the server, and honours kazoo's
//! `ReadLock` and `WriteLock` under the same path.
//!
//! It pays where reading takes long and writing is rare. Where what is protected takes no longer
//! than a few round trips, an exclusive lock is the better choice.
//!
//! # Example
//!
//! ```
//! # use zookeeper_recipes_core::ConnectOptions;
//! # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
//! use zookeeper_recipes_rwlock::{Recipe, Session, RwLock};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulation = Simulation::new(SimulationOptions::default());
//! # let simulated = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(&connect_string).await?;
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
//! // What was written can be read by all, but not changed by anyone else in between.
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
//! | reader ([`NoWriterBefore`]) | no writer is before it | the last writer before it |
//! | writer ([`NobodyBefore`]) | nobody is before it | the one right before it |
//!
//! So a writer's release wakes the readers up to the next writer, each of them once, and a
//! reader's release wakes no reader. To compare, [`QueueOptions::strategy`] has the ways that wake
//! everybody, or nobody ([`WaitStrategy`]).
//!
//! # Fencing tokens, with readers
//!
//! Tokens grow in the order of the queue. A store that is to refuse stale holders keeps the newest
//! *writer's* token and refuses any holder, reader or writer, whose token is older. It must not
//! keep readers' tokens: of two that hold together one is the older, and neither is stale.
//!
//! # Other languages
//!
//! The names are those of Curator's `InterProcessReadWriteLock` (`_c_<uuid>-__READ__<number>` and
//! `_c_<uuid>-__WRIT__<number>`); kazoo's (`<32 hex digits>__rlock__<number>` and
//! `<32 hex digits>__lock__<number>`) count as well. Do not put a lock of another kind under the
//! same path: an exclusive lock's contenders are none of this one's. See
//! [Sharing a lock with other languages](common::docs::sharing).

mod hold;
mod recipe;
mod rule;

pub use hold::WriteHold;
pub use recipe::{ReadLock, RwLock, WriteLock};
pub use rule::{NoWriterBefore, NobodyBefore};
pub use zookeeper_recipes_core::{
    self as common, AfterSessionLoss, ConnectOptions, Directories, Error, ErrorKind, FencingToken,
    Hold, HoldState, HoldView, InvalidInput, LossReason, QueueEntry, QueueOptions, Recipe, Session,
    SessionId, SessionState, WaitStrategy,
};
