//! The promises of the lock, on real servers.

mod handoff;
mod local_queue;
mod losing;
mod options;
mod support;
mod tokens;
mod waking;
