//! Recipes over a `zookeeper_client::Client` that the caller has connected.

mod ensemble;
mod session;
mod values;

pub use ensemble::ClientEnsemble;
