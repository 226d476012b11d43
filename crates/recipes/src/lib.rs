//! Recipes on ZooKeeper: locks, semaphores and leader election.
//!
//! Each recipe is a crate of its own, and this one is all of them under one name. What they share
//! comes from [`common`]: the [`Session`] they stand on, the trait [`Recipe`] that they all are, and
//! the [`Hold`] that each of them yields, which knows in time when it is lost and carries a
//! [`FencingToken`].
//!
//! ```
//! # use zookeeper_recipes_core::ConnectOptions;
//! # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
//! use zookeeper_recipes::{ExclusiveLock, Recipe, Session};
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
//! # Which crate to pick
//!
//! | what is to be so | recipe | feature, module | crate |
//! |---|---|---|---|
//! | one at a time | [`ExclusiveLock`] | [`lock`] | `zookeeper-recipes-lock` |
//! | many may read, one may write | [`RwLock`] | [`rwlock`] | `zookeeper-recipes-rwlock` |
//! | so many at a time, and some count for more than one | [`Semaphore`] | [`semaphore`] | `zookeeper-recipes-semaphore` |
//! | one process of a fleet does a job, and the next one takes over when it dies | [`LeaderElection`] | [`election`] | `zookeeper-recipes-election` |
//! | a recipe of one's own, or code that works with any | [`Recipe`], [`Rule`](common::Rule), [`Queue`](common::Queue) | always, [`common`] | `zookeeper-recipes-core` |
//!
//! A program that needs one recipe takes its crate and compiles no other: `cargo add
//! zookeeper-recipes-lock`. A program that needs several takes this one, with the features of those
//! it needs: `cargo add zookeeper-recipes --no-default-features --features lock,election`. The types
//! are the same ones either way.
//!
//! # Features
//!
//! * `lock`, `rwlock`, `semaphore`, `election`: one recipe each. `full`, the default: all of them.
//! * `tls`: encrypted connections. `sasl`: authentication. See
//!   [`ConnectOptions`].

#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(inline)]
pub use zookeeper_recipes_core as common;
#[doc(inline)]
pub use zookeeper_recipes_core::{
    AfterSessionLoss, ConnectOptions, Directories, Error, ErrorKind, FencingToken, Hold, HoldState,
    HoldView, InvalidInput, LossReason, QueueEntry, QueueOptions, Recipe, Session, SessionId,
    SessionState, WaitStrategy,
};
#[cfg(feature = "election")]
#[doc(inline)]
pub use zookeeper_recipes_election as election;
#[cfg(feature = "election")]
#[doc(inline)]
pub use zookeeper_recipes_election::{
    Leader, LeaderElection, Leadership, RunError, StopWork, Term,
};
#[cfg(feature = "lock")]
#[doc(inline)]
pub use zookeeper_recipes_lock as lock;
#[cfg(feature = "lock")]
#[doc(inline)]
pub use zookeeper_recipes_lock::ExclusiveLock;
#[cfg(feature = "rwlock")]
#[doc(inline)]
pub use zookeeper_recipes_rwlock as rwlock;
#[cfg(feature = "rwlock")]
#[doc(inline)]
pub use zookeeper_recipes_rwlock::{RwLock, WriteHold};
#[cfg(feature = "semaphore")]
#[doc(inline)]
pub use zookeeper_recipes_semaphore as semaphore;
#[cfg(feature = "semaphore")]
#[doc(inline)]
pub use zookeeper_recipes_semaphore::{Permits, Semaphore};
