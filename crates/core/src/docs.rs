//! Pages about the recipes as a whole.
//!
//! The first definition of a link counts. So `links.md` leads the links of each page to the items
//! here, and the definitions at the end of a page lead its readers on the web.

#[doc = include_str!("docs/links.md")]
#[doc = include_str!("docs/sharing.md")]
pub mod sharing {}

#[doc = include_str!("docs/links.md")]
#[doc = include_str!("docs/events.md")]
pub mod events {}

#[doc = include_str!("docs/links.md")]
#[doc = include_str!("docs/failures.md")]
pub mod failures {}

#[doc = include_str!("docs/links.md")]
#[doc = include_str!("docs/fencing.md")]
pub mod fencing {}

#[doc = include_str!("docs/links.md")]
#[doc = include_str!("docs/handoff.md")]
pub mod handoff {}

#[doc = include_str!("docs/connection.md")]
pub mod connection {}

#[doc = include_str!("docs/links.md")]
#[doc = include_str!("docs/restarts.md")]
pub mod restarts {}

#[doc = include_str!("docs/links.md")]
#[doc = include_str!("docs/runtimes.md")]
pub mod runtimes {}

#[doc = include_str!("docs/links.md")]
#[doc = include_str!("docs/lease.md")]
pub mod lease {}

#[doc = include_str!("docs/servers.md")]
pub mod servers {}
