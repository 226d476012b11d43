//! Models of what the recipes stand on, for `stateright` to check exhaustively.

pub mod lease;
pub mod local_handoff;
