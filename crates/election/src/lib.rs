//! Leader election on ZooKeeper.
//!
//! Processes campaign at one path in a [`LeaderElection`]. One of them leads at a time, in FIFO
//! order, until it resigns, dies, or is cut off. The znodes are those of Apache Curator's
//! `LeaderLatch`.
//!
//! # Example
//!
//! [`run`](LeaderElection::run) does what a service needs: it campaigns, works while it leads,
//! stops the work before another candidate can lead, and campaigns again.
//!
//! ```
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
//! # let until_shutdown = || tokio::time::sleep(Duration::from_millis(50));
//! # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(&connect_string).await?;
//! # session };
//! let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
//!
//! let service = tokio::spawn(async move {
//!     let shutdown = until_shutdown(); // for example, until Ctrl-C
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
//! | let a health check find work that continues for too long | [`health`](LeaderElection::health) |
//! | read who leads now | [`leader`](LeaderElection::leader) |
//! | know at any time who leads, and react to each change | [`watch_leader`](LeaderElection::watch_leader) |
//! | transfer the leadership to a chosen candidate | [`transfer_to`](LeaderElection::transfer_to) |
//! | lead only while no other candidate campaigns | [`standby`](LeaderElection::standby) |
//! | publish a text of the leader | [`proclaim`](Term::proclaim) |
//! | list all candidates | [`contenders`](LeaderElection::contenders) |
//!
//! # Transferring leadership
//!
//! [`LeaderElection::transfer_to`] names the candidate that leads next, from any process.
//! [`Term::transfer_to`] does so from the leader's work. A candidate on
//! [standby](LeaderElection::standby) leads only while no other candidate campaigns.
//!
//! 1. Only the first candidate in the queue leads. A transfer changes the order and not this rule,
//!    so two candidates never lead at once.
//! 2. The directory's data names the successor's znode. The leader watches the data, and resigns.
//! 3. A candidate reads the data when its turn comes. If the successor is behind the candidate, the
//!    candidate steps back: it leaves the queue without having led, and enters it again at the end.
//! 4. The candidate is then behind the successor, so it steps back once for each transfer. After
//!    all candidates before the successor have stepped back, the successor is first.
//! 5. If the successor's znode is deleted meanwhile, no further candidate steps back, and the first
//!    candidate leads.
//!
//! While the candidates step back, one after the other, nobody leads. A watch of the leader may
//! show each of them as the first. A `LeaderLatch` of Curator does not step back.
//!
//! # Limits
//!
//! A leader knows by the clock of its own process that it no longer leads, before another candidate
//! can lead. This does not stop a paused process from writing late: the pause can come between a
//! read of that clock and the write. If a late write does harm, let the store refuse an old
//! [`fencing_token`](HoldView::fencing_token), or write to ZooKeeper with
//! [guarded writes](HoldView::transaction).
//!
//! # Costs
//!
//! Each method has a table of its costs, in the words of [`Recipe`](Recipe#costs).
//!
//! # Other languages
//!
//! The names of the znodes are those of Curator's `LeaderLatch` (`_c_<uuid>-latch-<number>`). Their
//! data is the candidate's id, as in Curator. Processes with Curator can campaign under the same
//! path, and each sees the ids of the others. Do not use the path of an election of kazoo. See
//! [Sharing a lock with other languages](common::docs::sharing).

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-election/latest")]

mod candidate;
mod directory_data;
mod health;
mod leader;
mod leadership;
mod read_leader;
mod recipe;
mod rule;
mod run;
mod transfer;
mod watch_leader;

pub use health::ElectionHealth;
pub use leader::{Leader, LeaderState};
pub use leadership::{Leadership, Term};
pub use recipe::{LeaderElection, StopWork};
pub use rule::{FirstCandidate, has_to_step_back, named_successor};
pub use run::RunError;
#[doc(inline)]
pub use zookeeper_recipes_core::QueueOptions as ElectionOptions;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use zookeeper_recipes_core::TlsOptions;
pub use zookeeper_recipes_core::{
    self as common, Acl, AfterSessionLoss, AuthId, ConnectOptions, Directories, Ended, Error,
    ErrorKind, FencingToken, Hold, HoldState, HoldView, InvalidInput, LossReason, NodePath,
    Permission, QueueEntry, Recipe, RecipeExt, Refusal, Session, SessionEnd, SessionHealth,
    SessionId, SessionState,
};
