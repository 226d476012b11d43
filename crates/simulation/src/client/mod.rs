//! The clients: what the client of each session does, as the crate `zookeeper-client` does it.
//!
//! Nothing but the network is between a client and the servers: a client sends requests on a
//! connection, and the answers reach it there. The sessions of the interface use a client by
//! [`world::World::open_client`], `ask`, `close`, `abandon` and `drop_watcher`; the network by
//! `reach_client` and `hang_up`; the process that it runs on by `client_goes_on`. Another client
//! has to do no more than these.
//!
//! The times are those of `zookeeper-client`: a sign of life after 3/20 of the session timeout
//! without a request, a connection given up after 2/5 without an answer, the session given up after
//! 7/5.

pub(crate) mod action;
mod connecting;
pub(crate) mod errors;
mod hearing;
mod losing;
mod opening;
#[cfg(feature = "embedded")]
pub(crate) mod peers;
mod ports;
mod rolling;
mod sending;
mod settling;
mod standing_still;
pub(crate) mod state;
mod timing;
mod unwatching;
pub(crate) mod watch;
pub(crate) mod world;
