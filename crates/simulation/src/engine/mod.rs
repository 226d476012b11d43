//! The engine of a simulation: its clock, its chance, its one task, and the tasks of the processes.

mod dice;
pub(crate) mod kernel;
pub(crate) mod limits;
pub(crate) mod shared;
mod step;
pub(crate) mod tasks;
