//! Who leads.

use std::borrow::Cow;

use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};

/// What stands in a candidate's name before its number.
pub(crate) const LABEL: &str = "latch-";

/// Leads when nobody is before it, and waits on the one right before it.
///
/// Writes names as Apache Curator's `LeaderLatch` does: `_c_<uuid>-latch-<number>`. A latch that
/// waits listens for nothing but its predecessor's deletion, and would sleep through a release that
/// marks itself by a write. So a resignation is a plain deletion, and the next leader takes a
/// look at the queue, unless it was the only one left.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstInQueue;

impl Rule for FirstInQueue {
    fn label(&self) -> Cow<'_, str> {
        LABEL.into()
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
