//! The handoff between contenders: who may hold without a list of the queue?
//!
//! The model has one directory on a leader and on a follower that lags, and contenders with one
//! session each. Every order of the steps is the adversary's choice: when the follower applies an
//! operation, when an event arrives, when a contender sends its next request. The adversary also
//! chooses a bounded number of [faults](Fault).
//!
//! Each [`Change`] leaves one step of a proof out. A test shows that the model is then broken.
//!
//! # Where the model is wider than the servers
//! Each of these adds schedules and takes none away.
//! - A follower shows a transaction operation by operation.
//! - A deletion may arrive at the leader at any time after it was sent, and over any connection.
//! - A holder chooses at its release whether it marks it.
//! - After a reconnect the events that were missed come in any order.
//!
//! # What the model leaves out
//! - The lease. An expired session has ended its holds at the client: see [`lease`](crate::lease).
//! - The test of the identity. The operator cannot write to a znode whose release is marked.
//! - Rules that read the directory, such as a semaphore's. They use the marked release only.
//! - Guarded writes. The server refuses them once the znode is deleted.
//! - A change of the leader. A proof that compares two transactions fails after it.
//! - A second read by which contenders with the same number are put in order.

mod action;
mod contender;
mod model;
mod properties;
mod queue;
mod replay;
mod server;
mod setting;
mod state;
mod wait;

pub use action::{Action, Side};
pub use contender::{Contender, Phase, Way};
pub use replay::{Observed, Read, Replay};
pub use server::{LAST, Label, Tree, Znode, Zxid};
pub use setting::{Change, Fault, HandoffModel, Kind, Party};
pub use state::State;
