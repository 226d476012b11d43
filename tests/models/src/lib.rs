//! Models of what the recipes rely on, for `stateright` to check exhaustively.

#![allow(missing_docs, reason = "names that say all stand for themselves")]

pub mod handoff;
pub mod lease;
pub mod search;
