//! The names of the metrics, and their keys with the labels of a recipe.

#[cfg(feature = "metrics")]
use std::collections::HashMap;
#[cfg(feature = "metrics")]
use std::sync::{Arc, LazyLock};

#[cfg(feature = "metrics")]
use metrics::{Key, Label};

#[cfg(feature = "metrics")]
use crate::sync::{Mutex, lock};

pub(crate) const ATTEMPTS: &str = "zookeeper_recipes_attempts_total";
pub(crate) const WAITING: &str = "zookeeper_recipes_waiting";
pub(crate) const FAILED: &str = "zookeeper_recipes_failed_total";
pub(crate) const ACQUIRED: &str = "zookeeper_recipes_acquired_total";
pub(crate) const HOLDING: &str = "zookeeper_recipes_holding";
pub(crate) const WAITED: &str = "zookeeper_recipes_waited_seconds";
pub(crate) const HANDOFF: &str = "zookeeper_recipes_handoff_seconds";
pub(crate) const LOST: &str = "zookeeper_recipes_lost_total";
pub(crate) const RELEASED: &str = "zookeeper_recipes_released_total";
pub(crate) const HELD: &str = "zookeeper_recipes_held_seconds";
pub(crate) const OPENED: &str = "zookeeper_recipes_session_opened_total";
pub(crate) const RECONNECTS: &str = "zookeeper_recipes_session_reconnects_total";
pub(crate) const EXPIRIES: &str = "zookeeper_recipes_session_expiries_total";
pub(crate) const PROBES: &str = "zookeeper_recipes_session_probe_seconds";

/// The metrics of a recipe: all others are those of a session, without labels.
#[cfg(feature = "metrics")]
const OF_RECIPE: [&str; 10] = [
    ATTEMPTS, WAITING, FAILED, ACQUIRED, HOLDING, WAITED, HANDOFF, LOST, RELEASED, HELD,
];

/// The keys of a recipe's metrics, with their labels.
#[cfg(feature = "metrics")]
#[derive(Clone, Debug)]
pub(crate) struct Keys(Arc<[Key; OF_RECIPE.len()]>);

#[cfg(feature = "metrics")]
impl Keys {
    /// The keys of the recipes of this kind and this name, which share them.
    ///
    /// They are kept for good, as a recorder keeps what was reported under them.
    pub(crate) fn of(recipe: &'static str, name: &Arc<str>) -> Keys {
        type Made = HashMap<(&'static str, Arc<str>), Keys>;
        static MADE: LazyLock<Mutex<Made>> = LazyLock::new(Mutex::default);
        let mut made = lock(&MADE);
        let keys = made.entry((recipe, name.clone())).or_insert_with(|| {
            let keys = OF_RECIPE.map(|metric| {
                let recipe = Label::from_static_parts("recipe", recipe);
                let labels = vec![recipe, Label::new("name", name.clone())];
                Key::from_parts(metric, labels)
            });
            Keys(Arc::new(keys))
        });
        keys.clone()
    }

    /// The key of a metric, if it is one of a recipe.
    pub(crate) fn get(&self, metric: &str) -> Option<&Key> {
        self.0.iter().find(|key| key.name() == metric)
    }
}
