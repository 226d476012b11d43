//! The watches of a session: within a budget, and by reading from time to time beyond it.

pub(crate) mod budget;
pub(crate) mod sweep;
pub(crate) mod unwatch;
#[doc(hidden)]
pub mod watching;
