//! Processes: the machines that clients and tests run on, and the order in which their tasks go on.

pub(crate) mod machine;
pub(crate) mod turns;
