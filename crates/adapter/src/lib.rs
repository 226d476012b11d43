//! Recipes over a `zookeeper_client::Client` that the caller has connected.

mod ensemble;
mod session;
mod values;
mod watched_paths;

pub use ensemble::ClientEnsemble;
