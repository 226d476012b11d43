//! The code in the READMEs of the crates, as doc tests.

#[doc = include_str!("../../../crates/adapter/README.md")]
mod adapter {}
#[doc = include_str!("../../../crates/assignment/README.md")]
mod assignment {}
#[doc = include_str!("../../../crates/connection/README.md")]
mod connection {}
#[doc = include_str!("../../../crates/core/README.md")]
mod core {}
#[doc = include_str!("../../../crates/election/README.md")]
mod election {}
#[doc = include_str!("../../../crates/group/README.md")]
mod group {}
#[doc = include_str!("../../../crates/lock/README.md")]
mod lock {}
#[doc = include_str!("../../../crates/protocol/README.md")]
mod protocol {}
#[doc = include_str!("../../../crates/recipes/README.md")]
mod facade {}
#[doc = include_str!("../../../crates/rwlock/README.md")]
mod rwlock {}
#[doc = include_str!("../../../crates/semaphore/README.md")]
mod semaphore {}
#[doc = include_str!("../../../crates/simulation/README.md")]
mod simulation {}
#[doc = include_str!("../../../crates/testkit/README.md")]
mod testkit {}
