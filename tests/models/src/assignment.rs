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
//! - Which of several partitions the balance moves, of those that their worker owns.
//! - What a worker reads of the orders. Only the leader reads them.
//!
//! # What is promised
//! | promise | when |
//! |---|---|
//! | no two workers own a partition | always, also with plans that nobody guards or that anybody has written |
//! | at rest each partition is owned by the worker of a balanced plan, and the leader would write the same plan | while a worker lives that is not drained |
//! | no old leader writes a plan | always |
//! | the moves come to rest | after an event, within the bounds below |
//! | the next owner waits before a partition is released | in each move, if operators wait for the last order to be carried out |
//! | no more moves at once than stated | the same |
//! | the partitions of the other workers stay | a worker ends, leaves or is drained |
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
//!
//! # What is searched
//! | search | workers, partitions | events | states | states with one event more |
//! |---|---|---|---|---|
//! | a cold start | 3, 3 | 0 | 131,976 | 6,066,363 |
//! | a cold start under a fault | 2, 2 | 1 | 177,548 | 7,557,975 |
//! | a third worker comes | 3, 3 | 0 | 27 | 27 |
//! | an order | 3, 3 | 1 | 455 | 24,731 |
//! | orders, each at rest | 3, 3 | 2 | 14,867 | 215,055 |
//! | orders that cross | 3, 3 | 2 | 100,382 | 597,673 |
//! | a fault | 3, 3 | 1 | 1,916 | 8,792,560 |
//! | a worker ends, leaves or is drained | 3, 3 | 1 | 230 | 12,841 |
//! | any events | 3, 2 | 2 | 1,042,989 | not searched |
//! | any plan is written | 2, 2 | 2 | 123,921 | 8,656,596 |
//! | a grace that ends | 3, 2 | 2 | 815,280 | not searched |
//! | within the grace | 3, 3 | 2 | 1,178 | 7,173 |
//!
//! A fault is: a session or a process ends, a worker leaves or comes back, a leader loses the
//! leadership with a plan in its hand, a member reads the znodes long before it leads. An order
//! freezes, drains or places.
//!
//! `cargo test -p zookeeper-recipes-models --test assignment` runs all searches in half a minute on
//! two cores. With `ASSIGNMENT_EVENTS=1` before the command, each search has one event more. Add the
//! name of a test: some of them then take more memory than a machine has.

mod model;
mod plan;
mod properties;
mod setting;
mod state;

pub use model::Action;
pub use setting::{AssignmentModel, Change, Event, Grace, MOST, Start};
pub use state::{Draft, Entry, Orders, Page, Phase, Plan, Queue, Session, Set, State, Worker};
