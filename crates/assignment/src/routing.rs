//! Which worker owns each partition, as every process can watch it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use zookeeper_recipes_core::{Error, NodePath, Session};

use crate::kept_state::KeptState;
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
    let published = KeptState::new(session, [directory], None);
    let routing = |published: &mut KeptState<1>| {
        let [published] = published.children()?;
        let owners = owners(&published);
        Some(Routing { owners })
    };
    published
        .watch(session, directory, Duration::ZERO, routing)
        .await
}
