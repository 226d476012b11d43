//! tokio for the schedules of shuttle.
//!
//! [`shuttle_tokio`] is tokio's surface on the threads of shuttle. This crate adds what the library
//! uses and it does not have, and a clock that stands still: a timer fires if the test calls
//! [`time::tick`]. So what makes progress without a tick needs no timer.

pub mod runtime;
pub mod sync;
pub mod time;

pub use shuttle_tokio::{io, net, pin, select, spawn, task};
