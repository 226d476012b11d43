//! What the admin port changes and tells of.

use std::sync::Arc;

use crate::embedded::member::Member;
use crate::simulation::Simulation;

/// What the admin port changes and tells of.
#[derive(Debug)]
pub(super) struct Administered {
    pub(super) simulation: Simulation,
    pub(super) members: Vec<Arc<Member>>,
}
