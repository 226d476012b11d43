//! What moves a simulation on: its clock, its chance, and the order in which things happen.

pub(crate) mod agenda;
pub(crate) mod kernel;
pub(crate) mod limits;
