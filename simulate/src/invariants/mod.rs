//! The promises, each with how it is checked; those that need no look at what was committed are
//! judged by a [`History`](zookeeper_recipes_testkit::history::History).

pub(crate) mod errors;
pub(crate) mod fencing;
pub(crate) mod loss;
pub(crate) mod order;
pub(crate) mod remains;
pub(crate) mod turn;
