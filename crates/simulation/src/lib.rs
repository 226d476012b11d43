//! A ZooKeeper ensemble in memory: deterministic under a seed, on tokio's clock, with every fault
//! that a real one has.
//!
//! It implements the seam of `zookeeper-recipes-core`, so whatever runs on an
//! [`Ensemble`] runs on it. On tokio's paused clock an hour passes in a moment, and one seed
//! gives the same trace again; on the real clock it stands in for a server in a unit test.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Permission};
//! use zookeeper_recipes_simulation::{
//!     Fault, FaultKind, RequestKind, Simulation, SimulationOptions,
//! };
//!
//! let simulation = Simulation::new(SimulationOptions { seed: 7, ..Default::default() });
//! let session = simulation.ensemble("worker").connect().await.unwrap();
//! simulation.faults().inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Create));
//!
//! let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
//! let created = session.create("/a", b"", CreateMode::Persistent, &everyone).await;
//!
//! assert!(created.is_err(), "nobody knows whether it was created");
//! assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
//! # }
//! ```
//!
//! # What it models
//!
//! Servers with a leader and followers that lag behind it; znodes with their metadata, sequences
//! (with their end), containers and access control lists; transactions; one-shot watches;
//! sessions that the leader expires; clients that ping, give up a connection, reconnect and give
//! up a session at the times of the crate `zookeeper-client`.
//!
//! Beside what every network does to messages: followers that are cut off, both ways or one;
//! leaders that are cut off and go on answering; members that stand still, stall, or are
//! restarted with other settings; servers that forget sessions, refuse, or close the connection at
//! a request that they do not know; processes that sleep, whose sessions stand still, or whose
//! clocks drift.
//!
//! # Determinism
//!
//! A seed gives the same again on a current-thread runtime with a paused clock, as long as what
//! runs on it is deterministic too: `tokio::select!` without `biased;` is not.

mod administrator;
mod chance;
mod client;
mod engine;
mod faults;
mod opcode;
mod options;
mod process;
mod record;
mod run;
mod seam;
mod server;
mod simulated_process;
mod simulation;
mod wire;

pub use administrator::{Administrator, StandingNode, StandingWatch};
pub use chance::injected::{Fault, FaultKind};
pub use chance::rates::FaultRates;
pub use chance::way::Way;
pub use engine::limits::Limits;
pub use faults::Faults;
pub use opcode::Opcode;
pub use options::{ServerSettings, SimulationOptions};
pub use record::counters::Counters;
pub use record::history::{Change, Committed};
pub use record::request_kind::RequestKind;
pub use record::trace::{Trace, TraceEntry, TraceKind};
pub use simulated_process::SimulatedProcess;
pub use simulation::Simulation;
pub use wire::watch_kind::WatchKind;
