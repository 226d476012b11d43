//! The ensemble, served over TCP in ZooKeeper's own protocol.
//!
//! A connection is a task that reads frames, gives their requests to the simulation as those of a
//! client, and writes what the simulation sends back. All tasks of a server run on one thread.

#[cfg(feature = "admin")]
mod admin;
mod connection;
mod error;
mod figures;
mod member;
mod options;
mod outlet;
mod port;
mod server;
mod thread;
mod words;

pub use error::StartError;
pub use options::EmbeddedOptions;
pub use server::EmbeddedServer;
