//! What a simulation breaks: chosen requests, and by chance under the seed.

pub(crate) mod injected;
pub(crate) mod rates;
pub(crate) mod way;
