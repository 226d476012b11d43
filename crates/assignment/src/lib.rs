//! The plan by which N partitions are assigned to M workers.
//!
//! [`plan`] is a pure function, and sends nothing: from the workers that are there and the present
//! plan it computes the next one, balanced, with few moves. A program runs it where one process
//! decides, such as under a leadership.
//!
//! A plan does not exclude: two processes with different plans can take one partition. A process
//! that works on a partition must hold a lock of that partition as well.

mod plan;

pub use plan::{Moves, Plan, PlannedPartition, PlannedWorker, plan};
