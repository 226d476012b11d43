//! Leader election on ZooKeeper.
//!
//! Of the processes that campaign at one path in a [`LeaderElection`], one leads at a time, in the
//! order of arrival, until it resigns, dies, or is cut off. The znodes are those of Apache
//! Curator's `LeaderLatch`.
//!
//! # Example
//!
//! [`run`](LeaderElection::run) does what a service needs: it campaigns, works while it leads,
//! stops the work before another candidate can lead, and campaigns again.
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
//! | know at any time who leads | [`watch_leader`](LeaderElection::watch_leader) |
//! | react to each change of the leader | [`observe`](LeaderElection::observe) |
//! | hand over to a chosen candidate | [`transfer_to`](LeaderElection::transfer_to) |
//! | lead only while no other candidate campaigns | [`standby`](LeaderElection::standby) |
//! | publish a text of the leader | [`proclaim`](Term::proclaim) |
//! | list all candidates | [`participants`](LeaderElection::participants) |
//!
//! # Elections that people steer
//!
//! [`LeaderElection::transfer_to`] names the candidate that leads next, from any process.
//! [`Term::transfer_to`] does it from the leader's work. A candidate on
//! [standby](LeaderElection::standby) leads only while no other campaigns.
//!
//! 1. The first candidate in the queue leads, and no other. Steering changes the order and not this
//!    rule, so two candidates never lead at once.
//! 2. The directory's data names the successor's znode. The leader watches the data, and resigns.
//! 3. When its turn comes, a candidate reads the data if the data has changed since it began to
//!    wait. If the successor is behind it, it steps back: it leaves the queue without having led,
//!    and enters it at the end.
//! 4. The candidate is then behind the successor, so it steps back once for each transfer. After
//!    all candidates before the successor have stepped back, the successor is first.
//! 5. If the successor's znode is deleted meanwhile, no candidate steps back any more, and the
//!    first candidate leads.
//!
//! While the candidates step back, one after the other, nobody leads. An observer may see each of
//! them as the first. A `LeaderLatch` of Curator does not step back.
//!
//! # What leading is worth
//!
//! A leader knows by the clock of its own process that it no longer leads, before another candidate
//! can lead. This does not stop a paused process from writing late: the pause can come between a
//! look at that clock and the write. If a late write does harm, let the store refuse an old
//! [`fencing_token`](HoldView::fencing_token), or write to ZooKeeper with
//! [guarded writes](HoldView::transaction).
//!
//! # Costs
//!
//! Each method has a table of its requests, its round trips, and the watches that it sets. Requests
//! that are sent together count as one round trip. If the path does not exist, the first campaign
//! also creates it.
//!
//! A session sends a `sync`, its probe, in each tenth of its timeout, for any number of recipes. A
//! hold that did not wait sets a watch on its own znode at the next probe, by one request.
//!
//! # Other languages
//!
//! The names are those of Curator's `LeaderLatch` (`_c_<uuid>-latch-<number>`), and so is the data,
//! the candidate's id. Processes with Curator can campaign under the same path, and each sees the
//! ids of the others. Do not use the path of an election of kazoo. See
//! [Sharing a lock with other languages](common::docs::sharing).

mod backoff;
mod candidate;
mod health;
mod hold;
mod leader;
mod look;
mod newest;
mod notice;
mod observe;
mod options;
mod post;
mod recipe;
mod rule;
mod run;
mod steer;
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
    self as common, Acl, AfterSessionLoss, AuthId, ConnectOptions, DetachedSession, Directories,
    Error, ErrorKind, FencingToken, Hold, HoldState, HoldView, InvalidInput, LossReason, NodePath,
    Permission, QueueEntry, Recipe, Refusal, Session, SessionEnd, SessionHealth, SessionId,
    SessionState, WaitStrategy,
};
