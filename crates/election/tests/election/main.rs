//! The election: its promises on real servers and on a simulated ensemble.

mod conformance;
mod health;
mod leaders;
mod real_server;
mod rules;
mod short_terms;
mod shutdown;
mod transfers;
mod watching;
