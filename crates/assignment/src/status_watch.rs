//! The state of an assignment, as every process can watch it.

use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes_core::{Error, NodePath, Session};

use crate::children::{Children, ChildrenOf};
use crate::kept::{Kept, keep};
use crate::layout::Layout;
use crate::plans;
use crate::recorded::{RecordAt, Recorded};
use crate::status::{AssignmentStatus, Parts};

/// What changes within this time leads to one new value.
const INTERVAL: Duration = Duration::from_millis(50);

/// The parts of the state, each kept up to date.
struct Watched {
    workers: Kept<Children>,
    owned: Kept<Children>,
    plans: Kept<Children>,
    orders: Kept<Children>,
    drains: Kept<Children>,
    pins: Kept<Children>,
    partitions: Kept<Recorded>,
}

/// Watches the state, by a task that ends with the last receiver.
pub(crate) async fn watch_status(
    session: &Session,
    layout: &Layout,
) -> Result<watch::Receiver<AssignmentStatus>, Error> {
    let children = |directory: &NodePath| keep(session, ChildrenOf::new(directory));
    let mut watched = Watched {
        workers: children(&layout.workers),
        owned: children(&layout.owned),
        plans: children(&layout.plan),
        orders: children(&layout.orders),
        drains: children(&layout.drains),
        pins: children(&layout.pins),
        partitions: keep(session, RecordAt::new(&layout.partitions)),
    };
    let first = loop {
        if let Some(status) = watched.status() {
            break status;
        }
        if !watched.changed().await {
            // The session says why.
            session.server(&layout.base).await?;
        }
    };
    let (sender, receiver) = watch::channel(first);
    let task = async move {
        let keep_up_to_date = async {
            while watched.changed().await {
                sleep(INTERVAL).await;
                let Some(new) = watched.status() else {
                    continue;
                };
                sender.send_if_modified(|now| {
                    let is_new = *now != new;
                    *now = new;
                    is_new
                });
            }
        };
        tokio::select! {
            biased;
            () = sender.closed() => {}
            () = keep_up_to_date => {}
        }
    };
    tokio::spawn(session.ensemble().task(task.boxed()));
    Ok(receiver)
}

impl Watched {
    /// The state now. `None` if a part of it is not known yet.
    fn status(&mut self) -> Option<AssignmentStatus> {
        let partitions = self.partitions.borrow_and_update().clone()?;
        let partitions = match &*partitions {
            Recorded::Partitions(partitions) => partitions.planned().clone(),
            Recorded::Nothing | Recorded::Unreadable(..) => Default::default(),
        };
        let plans = self.plans.borrow_and_update().clone()?;
        let parts = Parts {
            members: &*self.workers.borrow_and_update().clone()?,
            owned: &*self.owned.borrow_and_update().clone()?,
            orders: &*self.orders.borrow_and_update().clone()?,
            drains: &*self.drains.borrow_and_update().clone()?,
            pins: &*self.pins.borrow_and_update().clone()?,
            partitions: &partitions,
            plans: &plans::plans_of(&plans),
        };
        Some(parts.status())
    }

    /// Waits until a part of the state has changed. False if the session is closed.
    async fn changed(&mut self) -> bool {
        let changed = tokio::select! {
            biased;
            changed = self.workers.changed() => changed,
            changed = self.owned.changed() => changed,
            changed = self.plans.changed() => changed,
            changed = self.orders.changed() => changed,
            changed = self.drains.changed() => changed,
            changed = self.pins.changed() => changed,
            changed = self.partitions.changed() => changed,
        };
        changed.is_ok()
    }
}
