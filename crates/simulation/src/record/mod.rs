//! The records of a simulation: a trace for people, a history for checkers, and counters.

pub(crate) mod counters;
pub(crate) mod fault_met;
pub(crate) mod history;
pub(crate) mod request_kind;
pub(crate) mod trace;
