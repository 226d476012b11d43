//! The locks: their promises on real servers and on a simulated ensemble.

mod conformance;
mod locks;
mod once_per_slot;
mod real_server;
mod rules;
mod single_node;
mod task_mutex;
