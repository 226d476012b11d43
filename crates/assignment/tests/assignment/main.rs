//! Workers that come, leave and die, on a simulated ensemble.

mod closed_sessions;
mod faults;
mod input;
mod leaders;
mod moves;
mod orders;
mod plans;
mod restarts;
mod stuck;
mod support;
mod workers;
