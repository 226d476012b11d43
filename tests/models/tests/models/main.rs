//! The models of the lease and of the handoff, over all their states, and beside the code.

mod handoff;
mod lease;
mod observations;
mod replay;
mod runs;
