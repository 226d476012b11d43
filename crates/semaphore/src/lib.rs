//! A semaphore on ZooKeeper.
//!
//! A [`Semaphore`] is a number of permits, over all the processes that use the same path. Each
//! acquisition takes one permit or several, in the order of arrival: whoever wants many is not
//! passed by those who want few. It is for a fleet that may do only so much of something at a
//! time: requests to a service with a quota, jobs on a shared machine, migrations of a database.
//!
//! # Example
//!
//! ```
//! # use zookeeper_recipes_core::ConnectOptions;
//! # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
//! use zookeeper_recipes_semaphore::{Recipe, Semaphore, Session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulation = Simulation::new(SimulationOptions::default());
//! # let simulated = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(&connect_string).await?;
//! # session };
//! let semaphore = Semaphore::new(&session, "/limits/exports", 5)?;
//!
//! let small = semaphore.acquire().await?;
//! let large = semaphore.acquire_many(3).await?;
//! assert_eq!(semaphore.available().await?, 1);
//! assert!(semaphore.try_acquire_many(2).await?.is_none());
//! small.release().await?;
//! large.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The number of permits
//!
//! It is the directory's data, in decimal digits. Who comes first records it; who comes with
//! another number is told so, with both numbers, and gets no permit: of two configurations one is
//! wrong, and no program can tell which. [`Semaphore::resize`] changes it for all.
//!
//! By default the directory is a container znode, which the server removes some time after the last
//! contender has gone, and the number with it; whoever comes next records theirs. Where a number
//! set by `resize` is to outlast such a pause, use [`Directories::Persistent`].
//!
//! # Other languages
//!
//! The names are this crate's own (`_c_<uuid>-permit-<weight>-<number>`). Curator's semaphore takes
//! a lock for each acquisition and writes twice as much; kazoo's and Curator's must not be put under
//! the same path. See [Sharing a lock with other languages](common::docs::sharing).

mod agreement;
mod recipe;
mod rule;

pub use recipe::{Permits, Semaphore};
pub use rule::WithinPermits;
pub use zookeeper_recipes_core::{
    self as common, AfterSessionLoss, ConnectOptions, Directories, Error, ErrorKind, FencingToken,
    Hold, HoldState, HoldView, InvalidInput, LossReason, NodePath, QueueEntry, QueueOptions,
    Recipe, Session, SessionId, SessionState, WaitStrategy,
};
