//! Faults: for chosen requests, and by chance under the seed.

pub(crate) mod fault;
pub(crate) mod rates;
