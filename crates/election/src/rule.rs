//! The rule of a leader election.

use std::borrow::Cow;

use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};

/// The label of a candidate, before the number in its name.
pub(crate) const LABEL: &str = "latch-";

/// Leads if no candidate is before it; otherwise waits on its predecessor.
///
/// Writes names as Apache Curator's `LeaderLatch` does: `_c_<uuid>-latch-<number>`. A waiting
/// `LeaderLatch` reacts only to the deletion of its predecessor, so it would miss a marked release.
/// So a resignation is a plain deletion. The next leader lists the queue, unless it had only one
/// candidate before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstInQueue;

impl Rule for FirstInQueue {
    fn label(&self) -> Cow<'_, str> {
        LABEL.into()
    }

    fn recipe(&self, _label: &str) -> &'static str {
        "election"
    }

    fn may_be_replaced(&self, _label: &str) -> bool {
        false
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let me = view.place();
        Ok(match me {
            0 => Verdict::Hold,
            _ => Verdict::wait_on(me - 1),
        })
    }
}
