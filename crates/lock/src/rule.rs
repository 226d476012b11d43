//! The rule of an exclusive lock.

use std::borrow::Cow;

use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};

const LABEL: &str = "lock-";

/// Holds if no contender is before it; otherwise waits on its predecessor.
///
/// Writes names as Apache Curator's `InterProcessMutex` does: `_c_<uuid>-lock-<number>`. Also
/// counts the contenders of kazoo: `<32 hex digits>__lock__<number>`, or with Curator's label `<32
/// hex digits>-lock-<number>`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstInQueue;

impl Rule for FirstInQueue {
    fn label(&self) -> Cow<'_, str> {
        LABEL.into()
    }

    fn counts(&self, label: &str) -> bool {
        matches!(label, LABEL | "__lock__" | "-lock-")
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let predecessor = view.place().checked_sub(1);
        Ok(predecessor.map_or(Verdict::Hold, Verdict::wait_on))
    }

    fn recipe(&self, _label: &str) -> &'static str {
        "lock"
    }

    fn holds_only_first(&self, label: &str) -> bool {
        label == LABEL
    }

    fn may_be_replaced(&self, _label: &str) -> bool {
        false
    }
}
