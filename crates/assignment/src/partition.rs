//! A partition that this worker owns.

use std::sync::Arc;

use tokio::sync::watch;
use zookeeper_recipes_core::{FencingToken, HoldView};

/// A partition that this worker owns, for the work on it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(crate) id: Arc<str>,
    pub(crate) hold: HoldView,
    pub(crate) draining: watch::Receiver<bool>,
}

impl Partition {
    /// The name of the partition.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The token by which a store distinguishes this owner from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.hold.fencing_token()
    }

    /// True if this worker certainly still owns the partition: see [`HoldView::is_held`]. The call
    /// sends nothing.
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// The view of the hold of the partition's lock: for its end, and for
    /// [guarded writes](HoldView::transaction).
    pub fn view(&self) -> HoldView {
        self.hold.clone()
    }

    /// True once the worker should give the partition away, or ends.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Resolves when the work should end, because the worker gives the partition away, or ends.
    ///
    /// The partition is still owned then. It is released when the work ends, or after
    /// [`drain_at_most`](crate::AssignmentOptions::drain_at_most).
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub async fn draining(&self) {
        let mut draining = self.draining.clone();
        // An error means that the work has been dropped.
        let _ = draining.wait_for(|draining| *draining).await;
    }
}
