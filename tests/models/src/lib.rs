//! Models of what the recipes rely on, for `stateright` to check exhaustively.

pub mod handoff;
pub mod lease;
pub mod search;
