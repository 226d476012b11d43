//! The assignment of partitions to workers: two owners, a forgotten partition, moves without end?
//!
//! The model has the znodes of an assignment (the group, the leader, the plan of each worker, what
//! each lists as owned, the lock of each partition, the orders) and the workers, one of which
//! leads. Every order of the steps is the adversary's choice: when a worker reads its plan, when it
//! has warmed, when a leader that has read the znodes writes each piece of its plan. The adversary
//! also chooses a bounded number of [events](Event) from outside.
//!
//! Each [`Change`] leaves one rule out. A test shows that the model is then broken.
//!
//! # Where the model is wider than the servers
//! Each of these adds schedules and takes none away.
//! - Any member may become the leader.
//! - The pieces of a plan are written in any order, however late.
//! - A session ends at any time after the client has stopped to rely on it.
//!
//! # What the model leaves out
//! - The protocol of a lock. It is a queue from which a session that the server expires is removed:
//!   see [`handoff`](crate::handoff) and [`lease`](crate::lease).
//! - Weights, capacities and zones. A property test of the plan covers them.
//! - A hook that never ends. Each step that is possible happens sooner or later.
//!
//! # Why the moves come to rest
//! Each step of a worker follows from a plan that is written, or from a lock that is granted. A
//! count of both since the last event is part of the state, and stays below a bound. So no run
//! without events goes round in a circle, and [`SETTLED`](AssignmentModel::SETTLED) says where each
//! run ends.
//!
//! | after | plans written, at most | locks granted, at most |
//! |---|---|---|
//! | a cold start, without events | 12 | 8 |
//! | a worker that crashes, leaves or is drained | 3 | 1 |
//! | a third worker that comes | 4 | 1 |
//! | an order | 6 | 2 |
//! | a session that ends, and its process comes back | 7 | 3 |
//! | two orders that cross | 16 | 8 |

mod model;
mod plan;
mod properties;
mod setting;
mod state;

pub use model::Action;
pub use setting::{AssignmentModel, Change, Event, Grace, MOST, Start};
pub use state::{Draft, Entry, Orders, Page, Phase, Plan, Queue, Session, Set, State, Worker};
