//! The promises of the lock, on real servers.

mod handoff;
mod losing;
mod options;
mod support;
mod tokens;
