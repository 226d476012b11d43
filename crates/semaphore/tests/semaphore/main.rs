//! The semaphore: its promises on real servers and on a simulated ensemble.

mod conformance;
mod real_server;
mod rules;
mod simulated;
