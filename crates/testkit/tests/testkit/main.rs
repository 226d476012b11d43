//! The servers, the proxy, the history and the conformance suite of the tests.

mod conformance;
mod ensemble;
mod history;
mod killed_process;
mod protocol;
mod proxy;
mod server;
