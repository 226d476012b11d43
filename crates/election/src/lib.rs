//! Leader election on ZooKeeper.
//!
//! Of the processes that campaign at one path in a [`LeaderElection`], one leads at a time, in the
//! order of arrival, until it resigns, dies, or is cut off. The znodes are those of Apache Curator's
//! `LeaderLatch`.
//!
//! # Example
//!
//! [`run`](LeaderElection::run) does what a service needs: it campaigns, works while it leads, stops
//! the work before another candidate can lead, and campaigns again.
//!
//! ```
//! # use zookeeper_recipes_core::ConnectOptions as SimulatedOptions;
//! # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
//! use std::time::Duration;
//!
//! use zookeeper_recipes_election::{LeaderElection, Session, Term};
//!
//! /// The leader's work. It is dropped when the leadership may be lost.
//! async fn lead(term: Term) -> std::io::Result<()> {
//!     println!("{} leads with token {}", term.id(), term.fencing_token());
//!     loop {
//!         // One piece of the work. An error ends the service.
//!         tokio::time::sleep(Duration::from_secs(1)).await;
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let until_told_to_end = || tokio::time::sleep(Duration::from_millis(50));
//! # let simulation = Simulation::new(SimulationOptions::default());
//! # let simulated = Session::open(simulation.ensemble("docs"), SimulatedOptions::new()).await?;
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
//! # Which method
//!
//! | to | use |
//! |---|---|
//! | do work while this process leads | [`run`](LeaderElection::run) |
//! | lead once, step by step | [`acquire`](LeaderElection::acquire), which yields a [`Leadership`] |
//! | know whether this process leads, without a request | [`is_leader`](LeaderElection::is_leader) |
//! | let a health check notice work that goes on too long | [`health`](LeaderElection::health) |
//! | know who leads now | [`leader`](LeaderElection::leader) |
//! | know who leads at any time | [`watch_leader`](LeaderElection::watch_leader) |
//! | react to each change of the leader | [`observe`](LeaderElection::observe) |
//! | list all candidates | [`participants`](LeaderElection::participants) |
//!
//! # What leading is worth
//!
//! A leader knows that it no longer leads before another candidate can lead, by the clock of its own
//! process. That does not stop a paused process from writing late: the pause can come between a look
//! at that clock and the write. If a late write does harm, let its target refuse an old
//! [`fencing_token`](HoldView::fencing_token), or write to ZooKeeper with
//! [guarded writes](HoldView::transaction).
//!
//! # Costs
//!
//! Each method has a table of its requests, its round trips, and the watches that it sets. Requests
//! that are sent together count as one round trip. Over a network such a pair can take one round
//! trip more, since zookeeper-client 0.11 does not set `TCP_NODELAY`. If the path does not exist, the
//! first campaign also creates it.
//!
//! A hold that did not wait sets a watch on its own znode after a sixth of the session timeout, by
//! one request. A session sends a `sync` in each tenth of its timeout, however many recipes use it.
//!
//! # Other languages
//!
//! The names are those of Curator's `LeaderLatch` (`_c_<uuid>-latch-<number>`), and so is the data,
//! the candidate's id. Processes with Curator can campaign under the same path, and each sees the
//! ids of the others. Do not use the path of an election of kazoo. See
//! [Sharing a lock with other languages](common::docs::sharing).

mod backoff;
mod health;
mod hold;
mod leader;
mod look;
mod newest;
mod observe;
mod options;
mod recipe;
mod rule;
mod run;
mod stop_work;

pub use health::ElectionHealth;
pub use hold::{Leadership, Term};
pub use leader::{Leader, Participant};
pub use options::ElectionOptions;
pub use recipe::LeaderElection;
pub use rule::FirstInQueue;
pub use run::RunError;
pub use stop_work::StopWork;
pub use zookeeper_recipes_core::{
    self as common, Acl, AfterSessionLoss, AuthId, ConnectOptions, Directories, Error, ErrorKind,
    FencingToken, Hold, HoldState, HoldView, InvalidInput, LossReason, NodePath, Permission,
    QueueEntry, Recipe, Refusal, Session, SessionEnd, SessionHealth, SessionId, SessionState,
    WaitStrategy,
};
