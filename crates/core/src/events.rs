//! Reports what happens to `tracing` and, with the feature `metrics`, to the `metrics` facade.
//!
//! [`docs::events`](crate::docs::events) lists the events and the metrics.

pub(crate) mod attempt;
pub(crate) mod hold;
pub(crate) mod keys;
pub(crate) mod meter;

use std::sync::Arc;

#[cfg(feature = "metrics")]
use self::keys::Keys;
use crate::path::NodePath;

pub(crate) const TARGET: &str = "zookeeper_recipes";

/// What the events of one recipe have in common.
#[derive(Clone, Debug)]
pub(crate) struct RecipeInfo {
    /// The kind of recipe, such as `lock`.
    pub(crate) recipe: &'static str,
    /// The name that the user gives, or the empty text.
    pub(crate) name: Arc<str>,
    pub(crate) path: NodePath,
    /// The text in the contender's znode that says whose it is.
    pub(crate) owner: Arc<str>,
    #[cfg(feature = "metrics")]
    pub(crate) keys: Keys,
}

impl RecipeInfo {
    pub(crate) fn new(
        recipe: &'static str,
        name: Arc<str>,
        path: NodePath,
        owner: Arc<str>,
    ) -> RecipeInfo {
        RecipeInfo {
            #[cfg(feature = "metrics")]
            keys: Keys::of(recipe, &name),
            recipe,
            name,
            path,
            owner,
        }
    }

    /// True for a leader election.
    pub(crate) fn leads(&self) -> bool {
        self.recipe == "election"
    }
}
