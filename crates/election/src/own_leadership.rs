//! The leadership that a candidate has acquired.

use std::sync::{Arc, Mutex, PoisonError};

use zookeeper_recipes_core::HoldView;

/// The latest leadership that a candidate, or a clone of it, has acquired.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnLeadership {
    view: Arc<Mutex<Option<HoldView>>>,
}

impl OwnLeadership {
    /// Keeps this view, unless the present one is of a later leadership.
    ///
    /// Two tasks may report their leaderships in any order.
    pub(crate) fn acquired(&self, view: HoldView) {
        let mut latest = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = |other: &HoldView| view.fencing_token() > other.fencing_token();
        if latest.as_ref().is_none_or(is_newer) {
            *latest = Some(view);
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.view().as_ref().is_some_and(HoldView::is_held)
    }

    pub(crate) fn view(&self) -> Option<HoldView> {
        let latest = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        latest.clone()
    }
}
