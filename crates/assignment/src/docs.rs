//! Pages about the assignment as a whole.

#[doc = include_str!("docs/balance.md")]
pub mod balance {}

#[doc = include_str!("docs/limits.md")]
pub mod limits {}

#[doc = include_str!("docs/moves.md")]
pub mod moves {}
