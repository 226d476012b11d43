//! Pages about the recipes as a whole.

#[doc = include_str!("docs/sharing.md")]
pub mod sharing {}

#[doc = include_str!("docs/failures.md")]
pub mod failures {}

#[doc = include_str!("docs/handoff.md")]
pub mod handoff {}

#[doc = include_str!("docs/lease.md")]
pub mod lease {}
