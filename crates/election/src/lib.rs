//! Leader election on ZooKeeper.
//!
//! Of the processes that campaign at a path in a [`LeaderElection`], one leads at a time, in the
//! order of arrival, until it resigns, dies, or is cut off. It is Apache Curator's `LeaderLatch` on
//! the server.
//!
//! # Example
//!
//! [`run`](LeaderElection::run) does what a service needs: it campaigns, does the work while it
//! leads, stops it before another can lead, and campaigns again.
//!
//! ```
//! # use zookeeper_recipes_core::ConnectOptions;
//! # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
//! use std::time::Duration;
//!
//! use zookeeper_recipes_election::{LeaderElection, Session, Term};
//!
//! /// The leader's work. It is dropped when the leadership may be about to go.
//! async fn lead(term: Term) -> std::io::Result<()> {
//!     println!("{} leads with token {}", term.id(), term.fencing_token());
//!     loop {
//!         // One piece of the work; an error here ends the service.
//!         tokio::time::sleep(Duration::from_secs(1)).await;
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let until_told_to_end = || tokio::time::sleep(Duration::from_millis(50));
//! # let simulation = Simulation::new(SimulationOptions::default());
//! # let simulated = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(&connect_string).await?;
//! # session };
//! let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
//!
//! let service = tokio::spawn(async move {
//!     let shutdown = until_told_to_end(); // for example, until Ctrl-C
//!     election.run(shutdown, lead).await
//! });
//! service.await??;
//! # Ok(())
//! # }
//! ```
//!
//! [`observe`](LeaderElection::observe) tells who leads, to anyone who wants to know;
//! [`campaign`](LeaderElection::campaign) yields the [`Leadership`] itself, to be used step by step.
//!
//! # What leading is worth
//!
//! The leader is told that it leads no more before another can lead, by the clock of its own
//! process. But a process can be paused between a look at that clock and what it does next, so two
//! leaders can *act* at once all the same, one of them late. Where that must not matter, let the
//! other side check: give the [`fencing_token`](HoldView::fencing_token) along with the work and let its
//! target refuse an older one, or write to ZooKeeper under guard ([`HoldView::transaction`]).
//!
//! # Other languages
//!
//! The names are those of Curator's `LeaderLatch` (`_c_<uuid>-latch-<number>`), and so is the data,
//! the candidate's id: processes that use it can campaign under the same path, and each sees the
//! others' ids. kazoo's election must not be put under the same path.
//! See [Sharing a lock with other languages](common::docs::sharing).

mod backoff;
mod hold;
mod leader;
mod observe;
mod recipe;
mod rule;
mod run;

pub use hold::{Leadership, Term};
pub use leader::{Leader, Participant};
pub use recipe::LeaderElection;
pub use rule::FirstInQueue;
pub use run::{RunError, StopWork};
pub use zookeeper_recipes_core::{
    self as common, AfterSessionLoss, ConnectOptions, Directories, Error, ErrorKind, FencingToken,
    Hold, HoldState, HoldView, InvalidInput, LossReason, QueueEntry, QueueOptions, Recipe, Session,
    SessionId, SessionState, WaitStrategy,
};
