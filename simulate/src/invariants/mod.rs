//! The promises, each with how it is checked.

pub(crate) mod errors;
pub(crate) mod exclusion;
pub(crate) mod fencing;
pub(crate) mod loss;
pub(crate) mod order;
pub(crate) mod remains;
pub(crate) mod turn;
