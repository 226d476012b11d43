//! What moves a simulation on: its one task, the dice, and the tasks of the processes.

mod dice;
pub(crate) mod shared;
mod step;
pub(crate) mod tasks;
