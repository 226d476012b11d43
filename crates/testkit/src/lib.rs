//! ZooKeeper for tests: real servers and ensembles on loopback.
//!
//! A [`Server`] has a port and a data directory of its own, in memory where the system has such;
//! it serves when [`Server::start`] returns, and is gone when it is dropped, whether the test
//! returned, panicked or was killed. Several run side by side. An [`Ensemble`] is three of them, or
//! as many as you like.
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use zookeeper_client::{Acls, Client, CreateMode};
//! use zookeeper_recipes_testkit::{Server, ServerOptions};
//!
//! let mut server = Server::start(ServerOptions::new()).await?;
//! let client = Client::connect(&server.connect_string()).await?;
//! let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
//! client.create("/kept", b"", &options).await?;
//!
//! server.kill().await?; // with -9
//! server.restart().await?; // with its data, on its port
//! assert!(client.check_stat("/kept").await?.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! # What can be done to a server
//!
//! | | |
//! |---|---|
//! | [`stop`](Server::stop), [`kill`](Server::kill), [`restart`](Server::restart) | in good order, or not; data and port stay |
//! | [`pause`](Server::pause), [`resume`](Server::resume) | connections stay open, nothing is answered |
//! | [`expire_session`](Server::expire_session) | a session of your choice expires now |
//! | [`set_create_counter`](Server::set_create_counter) | sequential names go on from a number of your choice, such as the last one |
//! | [`monitor`](Server::monitor), [`watches`](Server::watches), [`ephemerals`](Server::ephemerals) | what your code cost, and what it left behind |
//!
//! A [`proxy`] between your code and a server breaks connections at the request of your choice, and
//! counts; and in an ensemble [started for it](Ensemble::start_with_partitions) a member can be cut
//! off from the others. A [`history`] judges whether holders ever held together who may not. A
//! [`meter`] counts at the seam of the recipes what a session asks and is told.
//!
//! # Without a server
//!
//! Unit tests of code that uses the recipes need no server. The crate
//! [`zookeeper-recipes-simulation`](https://docs.rs/zookeeper-recipes-simulation) is an ensemble in
//! memory: it starts at once, runs on tokio's paused clock, and has every fault of a real ensemble.
//!
//! # What real servers need
//!
//! A ZooKeeper server (3.5 or newer) and a Java runtime on the machine, found by
//! [`Installation::find`]: `ZOOKEEPER_CLASSPATH`, `ZOOKEEPER_HOME`, Debian's package `zookeeper`,
//! or Homebrew's. Where there is none, the error says what to install. It runs on Unix.
//!
//! Code that needs no more than a connect string takes a [`TestEnsemble`], and so can be pointed to
//! an ensemble that runs already, by `ZOOKEEPER_CONNECT`.

pub mod conformance;
mod create_counter;
mod data_directory;
mod ensemble;
mod environment;
mod error;
pub mod four_letter;
mod handshake;
pub mod history;
mod installation;
pub mod laws;
pub mod meter;
mod options;
mod partitions;
mod ports;
mod process;
pub mod proxy;
mod server;

pub use ensemble::Ensemble;
pub use environment::{CONNECT_VARIABLE, TestEnsemble};
pub use error::Error;
pub use four_letter::{FourLetterWord, Mode, Monitor, Status};
pub use installation::{Installation, InstallationError};
pub use options::{Compiler, ServerOptions};
pub use server::Server;
