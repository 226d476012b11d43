//! Pages about the assignment as a whole.

#[doc = include_str!("docs/balance.md")]
pub mod balance {}
