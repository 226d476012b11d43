//! The read/write lock: its promises on real servers.

mod conformance;
mod real_server;
mod rules;
