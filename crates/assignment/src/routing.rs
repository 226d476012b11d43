//! Which worker owns each partition, as every process can watch it.

use std::collections::BTreeMap;

use futures_util::future::FutureExt;
use tokio::sync::watch;
use zookeeper_recipes_core::{Error, NodePath, Session};

use crate::children::ChildrenOf;
use crate::kept::keep;
use crate::owned::{Owner, owners};

/// Which worker owns each partition, as far as a process knows.
///
/// It is what the workers have published. It may be old, and it is no proof: a worker that is shown
/// may own the partition no longer. If a late request does harm, send the
/// [`fencing_token`](Owner::fencing_token) with it, and let the worker compare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    owners: BTreeMap<String, Owner>,
}

impl Routing {
    /// The owner of the partition. `None` if nobody is known to own it.
    pub fn owner(&self, partition: &str) -> Option<&Owner> {
        self.owners.get(partition)
    }

    /// The partitions that are owned, in the order of their names, with their owners.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Owner)> {
        self.owners
            .iter()
            .map(|(partition, owner)| (partition.as_str(), owner))
    }

    /// The number of partitions that are owned.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// True if no partition is owned.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }
}

/// Watches the owners, by a task that ends with the last receiver.
pub(crate) async fn watch_routing(
    session: &Session,
    directory: &NodePath,
) -> Result<watch::Receiver<Routing>, Error> {
    let mut published = keep(session, ChildrenOf::new(directory));
    let first = published.wait_for(Option::is_some).await.is_ok();
    if !first {
        // The session says why.
        session.server(directory).await?;
    }
    let routing = |published: &mut crate::kept::Kept<crate::children::Children>| {
        let published = published.borrow_and_update().clone();
        let owners = published.map(|published| owners(&published));
        Routing {
            owners: owners.unwrap_or_default(),
        }
    };
    let (sender, receiver) = watch::channel(routing(&mut published));
    let task = async move {
        loop {
            tokio::select! {
                biased;
                () = sender.closed() => return,
                changed = published.changed() => if changed.is_err() {
                    return;
                },
            }
            let new = routing(&mut published);
            sender.send_if_modified(|now| {
                let is_new = *now != new;
                *now = new;
                is_new
            });
        }
    };
    tokio::spawn(session.ensemble().task(task.boxed()));
    Ok(receiver)
}
