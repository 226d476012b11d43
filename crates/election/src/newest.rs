//! What one candidate knows of its own leadership.

use std::sync::{Arc, Mutex, PoisonError};

use zookeeper_recipes_core::HoldView;

/// The newest leadership that a candidate, or a clone of it, has acquired.
#[derive(Clone, Debug, Default)]
pub(crate) struct Newest {
    view: Arc<Mutex<Option<HoldView>>>,
}

impl Newest {
    /// Keeps the view, unless one of a later leadership is there: two tasks may come in any order.
    pub(crate) fn acquired(&self, view: HoldView) {
        let mut newest = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = |other: &HoldView| view.fencing_token() > other.fencing_token();
        if newest.as_ref().is_none_or(is_newer) {
            *newest = Some(view);
        }
    }

    /// Whether that leadership is still held.
    pub(crate) fn is_held(&self) -> bool {
        self.view().as_ref().is_some_and(HoldView::is_held)
    }

    pub(crate) fn view(&self) -> Option<HoldView> {
        let newest = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        newest.clone()
    }
}
