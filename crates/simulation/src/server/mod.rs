//! The servers: the members of the ensemble, and the messages between them.
//!
//! Nothing here knows how clients work. Messages of clients come over the network, on a connection,
//! and the answers go back the same way. The rest of a simulation calls [`state::Servers`] for
//! three things: to perform what is due, to break servers, and to read or change the tree as an
//! administrator.

pub(crate) mod access;
pub(crate) mod action;
mod commit;
pub(crate) mod data;
mod dispatch;
mod expiry;
mod faults_met;
mod follower;
mod handshakes;
mod isolation;
mod leader;
mod member;
mod paths;
mod proposal;
mod quorum;
mod reads;
mod replies;
mod requests;
mod session;
mod set_watches;
pub(crate) mod state;
mod transaction;
pub(crate) mod tree;
pub(crate) mod watches;
mod writes;
