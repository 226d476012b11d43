//! The servers: what each member of the ensemble has, and what members say to each other.
//!
//! Nothing here knows how clients work. Messages of clients come over the network, on a connection,
//! and the answers go back the same way. The rest of a simulation calls [`state::Servers`] for
//! three things: to perform what is due, to break servers, and to look at them or change them as an
//! administrator.

mod access;
mod action;
mod addresses;
mod administering;
mod answering;
mod apply;
mod arriving;
mod committing;
mod containers;
mod end;
mod expiring;
mod following;
mod isolated;
mod isolation;
mod leading;
mod member;
pub(crate) mod password;
mod paths;
mod peer_message;
mod perform;
mod persistent_watches;
pub(crate) mod proposal;
mod proposing;
mod quorum;
mod read_only;
mod reading;
mod replying;
mod rewatching;
#[cfg(feature = "embedded")]
mod roles;
mod session_record;
mod stalls;
pub(crate) mod state;
mod stopping;
pub(crate) mod transaction;
pub(crate) mod tree;
mod watches;
