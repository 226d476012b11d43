//! The promises of the lock, on real servers.

mod bad_input;
mod crowds;
mod deadline;
mod exclusion;
mod handoff;
mod local_queue;
mod losing;
mod support;
mod waking;
