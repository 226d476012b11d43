//! What a session watches: within a budget, else by looking from time to time.

pub(crate) mod budget;
pub(crate) mod sweep;
pub(crate) mod unwatch;
#[doc(hidden)]
pub mod watching;
