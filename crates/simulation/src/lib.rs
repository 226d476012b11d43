//! A ZooKeeper ensemble in memory, for tests: deterministic under a seed, with every fault of a
//! real one.
//!
//! A [`Simulation`] needs no server, no Java and no network, and starts at once. It implements
//! [`Ensemble`](zookeeper_recipes_core::Ensemble), the trait by which `zookeeper-recipes-core`
//! reaches an ensemble. So recipes, and code that uses them, run on it unchanged. It keeps nothing
//! on disk.
//!
//! # In a unit test
//!
//! On the real clock, the simulation replaces a server:
//!
//! ```
//! use zookeeper_recipes_lock::{ConnectOptions, Error, ExclusiveLock, Recipe, Session};
//! use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
//!
//! /// The code under test.
//! async fn next_number(session: &Session, last: &mut u32) -> Result<u32, Error> {
//!     let hold = ExclusiveLock::new(session, "/locks/numbers")?.acquire().await?;
//!     *last += 1;
//!     hold.release().await?;
//!     Ok(*last)
//! }
//!
//! # /*
//! #[tokio::test]
//! # */
//! # #[tokio::main(flavor = "current_thread")]
//! async fn numbers_are_given_out_under_the_lock() {
//!     let simulation = Simulation::default();
//!     let worker = simulation.ensemble("worker");
//!     let session = Session::open(worker, ConnectOptions::new()).await.unwrap();
//!
//!     assert_eq!(next_number(&session, &mut 7).await.unwrap(), 8);
//!     let names = simulation.administrator().children("/locks/numbers");
//!     assert!(names.is_empty(), "it was released");
//! }
//! # numbers_are_given_out_under_the_lock();
//! ```
//!
//! The [`ConnectOptions`](zookeeper_recipes_core::ConnectOptions) of the session apply as over TCP:
//! its session timeout, its tick, its credentials. If they set no session timeout, that of
//! [`SimulationOptions`] applies. TLS is not simulated.
//!
//! # When things go wrong
//!
//! On tokio's paused clock, an hour passes in a moment. A process can be partitioned, suspended or
//! killed:
//!
//! ```
//! # use zookeeper_recipes_lock::{ConnectOptions, ExclusiveLock, Recipe, Session};
//! # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
//! use std::time::Duration;
//!
//! # /*
//! #[tokio::test(start_paused = true)]
//! # */
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn holder_that_is_cut_off_learns_it_before_another_holds() {
//!     let simulation = Simulation::default();
//!     let (one, other) = (simulation.process("one"), simulation.process("other"));
//!     let session = Session::open(one.ensemble(), ConnectOptions::new()).await.unwrap();
//!     let lock = ExclusiveLock::new(&session, "/locks/report").unwrap();
//!     let hold = lock.acquire().await.unwrap();
//!
//!     one.partition(Duration::from_secs(3600));
//!     hold.lost().await;
//!
//!     let session = Session::open(other.ensemble(), ConnectOptions::new()).await.unwrap();
//!     let lock = ExclusiveLock::new(&session, "/locks/report").unwrap();
//!     let next = lock.acquire().await.unwrap();
//!     assert!(next.fencing_token() > hold.fencing_token());
//! }
//! # holder_that_is_cut_off_learns_it_before_another_holds();
//! ```
//!
//! A fault can also hit one chosen request:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Permission};
//! use zookeeper_recipes_simulation::{
//!     Fault, FaultKind, RequestKind, Simulation, SimulationOptions,
//! };
//!
//! let simulation = Simulation::with(|it| it.seed = 7);
//! let session = simulation.process("worker").connect().await.unwrap();
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
//! # Over TCP
//!
//! With the feature `embedded` the ensemble is also served over TCP, in ZooKeeper's own protocol,
//! to clients in any language. `EmbeddedServer::start()` starts a server on a free port in
//! milliseconds, and dropping it ends it. `EmbeddedServer::start_ensemble()` starts three members,
//! each with a port. Both run in real time, with every fault below.
//!
//! ```
//! # #[cfg(feature = "embedded")]
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use zookeeper_recipes_lock::{ExclusiveLock, Session};
//! use zookeeper_recipes_simulation::EmbeddedServer;
//!
//! let server = EmbeddedServer::start()?;
//! let session = Session::connect(&server.connect_string()).await?;
//! let hold = ExclusiveLock::new(&session, "/locks/report")?.acquire().await?;
//! hold.release().await?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "embedded"))]
//! # fn main() {}
//! ```
//!
//! It is for development and tests, not a store: it keeps nothing on disk. With the feature `admin`,
//! faults can also be injected over HTTP.
//!
//! # What a test can do to a simulation
//!
//! | handle | what it does |
//! |---|---|
//! | [`SimulatedProcess`] | is cut off one way or both, sleeps, wakes, is killed, has its runtime blocked, has a long round trip to the servers |
//! | [`block_this_task`] | has one task blocked, as work that blocks its thread |
//! | [`Faults`] | loses and delays requests and replies; makes handshakes slow; cuts off followers; isolates leaders; stalls commits; pauses, stops and restarts servers; makes a follower lag; forgets sessions; takes the servers back to an older state, or to none. Most of these also [by chance](FaultRates) |
//! | [`Administrator`] | reads and changes the tree regardless of access control lists, expires sessions at once, lists watches |
//! | [`SimulationOptions`] | number of servers, timeouts, delays, clock drift, server version, requests that the servers do not know, [limits](Limits) |
//! | [`Trace`], [`Committed`], [`Counters`] | the past: for a person to read, for a test to check, in numbers |
//!
//! To make a holder lose its hold as most holders do, [cut its process off](SimulatedProcess::partition): the
//! holder learns of the loss before another can hold. [`Administrator::expire`] ends a session while
//! its client still relies on it: the next contender may hold at once.
//!
//! # What is modelled
//!
//! * Servers: a leader, and followers that lag behind it. Elections, quorums, synchronisation.
//! * The tree: znodes with their metadata, sequence numbers with their end, containers, access
//!   control lists, transactions, one-shot, persistent and recursive watches.
//! * Sessions: the leader expires them, a reconnect moves them to another server.
//! * Clients: they are the library's own connection. The network carries the bytes of frames, and a
//!   fault can cut a request or a reply at any byte. A server decodes the bytes that arrive.
//!
//! # Determinism
//!
//! The same seed gives the same trace, if the runtime is a current-thread runtime with a paused
//! clock and the code that runs on it is deterministic. `tokio::select!` without `biased;` is not.

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-simulation/latest")]

mod administrator;
mod chance;
mod client;
#[cfg(feature = "embedded")]
mod embedded;
mod engine;
mod faults;
mod options;
mod record;
mod server;
mod simulated_process;
mod simulation;
mod wire;

pub use administrator::{Administrator, StandingNode, StandingWatch};
pub use chance::fault::Way;
pub use chance::fault::{Fault, FaultKind};
pub use chance::rates::FaultRates;
#[cfg(feature = "embedded")]
pub use embedded::{EmbeddedOptions, EmbeddedServer, StartError};
pub use engine::limits::Limits;
pub use engine::tasks::block_this_task;
pub use faults::{Backup, Faults};
pub use options::Opcode;
pub use options::{ServerSettings, SimulationOptions};
pub use record::counters::Counters;
pub use record::fault_met::FaultMet;
pub use record::history::{Change, Committed};
pub use record::request_kind::RequestKind;
pub use record::trace::{Trace, TraceEntry, TraceKind};
pub use server::watches::WatchKind;
pub use simulated_process::SimulatedProcess;
pub use simulation::Simulation;
