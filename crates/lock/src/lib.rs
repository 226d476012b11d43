//! An exclusive lock on ZooKeeper.
//!
//! [`ExclusiveLock`] is held by one at a time, in the order of arrival, over all the processes
//! that use the same path. It is Apache Curator's `InterProcessMutex` on the server.
//!
//! # Do you need one?
//!
//! A lock held over a network is never as safe as one within a process: whoever holds it can be
//! paused, and find it gone on waking. If a single ZooKeeper transaction can do the work, or a
//! conditional write to your database, use that and nothing else. If it is only about doing work
//! once instead of twice, a lock is fine. If doing it twice would do harm, give the
//! [`fencing_token`](HoldView::fencing_token) along with the work and let its target refuse an older
//! one, or write to ZooKeeper under guard ([`HoldView::transaction`]).
//!
//! # Example
//!
//! ```
//! # use zookeeper_recipes_core::ConnectOptions;
//! # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
//! use zookeeper_recipes_lock::{ExclusiveLock, Recipe, Session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulation = Simulation::new(SimulationOptions::default());
//! # let simulated = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(&connect_string).await?;
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
//! # Four ways to wait
//!
//! | | one release wakes | order |
//! |---|---|---|
//! | [`ExclusiveLock`], [`WaitStrategy::Predecessor`] (default) | the next one | arrival |
//! | [`ExclusiveLock`], [`WaitStrategy::Parent`] | every waiter, each of which lists the queue | arrival |
//! | [`ExclusiveLock`], [`WaitStrategy::Poll`] | nobody; every waiter lists the queue for ever | arrival |
//! | [`SingleNodeLock`] | every waiter, each of which tries to create the znode | none |
//!
//! The last three are here to be compared with the first.
//!
//! # Other languages
//!
//! The names are those of Curator's `InterProcessMutex` (`_c_<uuid>-lock-<number>`): processes that
//! use Curator, go-zookeeper or zookeeper-client can queue under the same path, and kazoo's when
//! told to look for `-lock-`. See [Sharing a lock with other languages](common::docs::sharing).

mod recipe;
mod rule;
mod single_node;

pub use recipe::ExclusiveLock;
pub use rule::FirstInQueue;
pub use single_node::SingleNodeLock;
pub use zookeeper_recipes_core::{
    self as common, AfterSessionLoss, ConnectOptions, Directories, Error, ErrorKind, FencingToken,
    Hold, HoldState, HoldView, InvalidInput, LossReason, QueueEntry, QueueOptions, Recipe, Session,
    SessionId, SessionState, SingleNodeOptions, WaitStrategy,
};
