//! ZooKeeper for tests: real servers and ensembles on loopback.
//!
//! A [`Server`] has its own port and its own data directory, on a memory file system if there is one.
//! It is ready for clients when [`Server::start`] returns. It ends when it is dropped, and also if
//! the test panics or is killed. Several servers run side by side. An
//! [`Ensemble`] has three servers, or any other number.
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
//! # What you can do to a server
//!
//! | methods | what happens |
//! |---|---|
//! | [`stop`](Server::stop), [`kill`](Server::kill), [`restart`](Server::restart) | the server shuts down or is killed, and starts again with its data, on its port |
//! | [`pause`](Server::pause), [`resume`](Server::resume) | connections stay open, and the server does not answer |
//! | [`expire_session`](Server::expire_session) | one session expires now |
//! | [`set_create_counter`](Server::set_create_counter) | the next sequential name gets a number of your choice, such as the last one |
//! | [`monitor`](Server::monitor), [`watches`](Server::watches), [`ephemerals`](Server::ephemerals) | the cost of your code, and the znodes and watches that it leaves |
//!
//! A [`proxy`] between your code and a server breaks connections at chosen requests, and counts
//! requests. In an ensemble [with partitions](Ensemble::start_with_partitions) you can cut one
//! member off from the others. A [`history`] checks that no holds overlap that must not. A
//! [`meter`] counts the requests and the notifications of one session, and [`altered`] changes them.
//!
//! # Without a server
//!
//! Unit tests of code that uses the recipes need no server. The crate
//! [`zookeeper-recipes-simulation`](https://docs.rs/zookeeper-recipes-simulation) is an ensemble in
//! memory: it starts at once, runs on tokio's paused clock, and has every fault of a real ensemble.
//!
//! # What real servers need
//!
//! Real servers need Unix, a ZooKeeper server (3.5 or newer) and a Java runtime on the machine.
//! [`Installation::find`] looks for the server in `ZOOKEEPER_CLASSPATH`, in `ZOOKEEPER_HOME`, in
//! Debian's package `zookeeper`, and in Homebrew's. If there is none, the error says how to install
//! one.
//!
//! If your code needs only a connect string, use a [`TestEnsemble`]: the variable `ZOOKEEPER_CONNECT`
//! then selects an ensemble that is already running.

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-testkit/latest")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod altered;
pub mod conformance;
mod create_counter;
mod data_directory;
mod ensemble;
mod environment;
mod error;
#[allow(missing_docs, reason = "the fields are the methods of the traits")]
pub mod fake;
pub mod four_letter;
mod frames;
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
pub use ports::free_port;
pub use server::Server;
