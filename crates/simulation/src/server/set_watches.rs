//! The watches that a client sets again when it resumes its session.

use zookeeper_recipes_protocol::EventType;

use super::member::{Member, MemberState};
use super::state::Servers;
use super::watches::{WatchKind, WatchMode};
use crate::wire::network::ConnectionId;

/// A watch that a session which has come back sets again.
#[derive(Clone, Copy)]
enum Renewed {
    Data,
    Exists,
    Children,
}

impl Servers {
    /// Sets watches of data, of existence and of children again, one by one.
    ///
    /// If the network has delays, the order is random, and the server may apply transactions in
    /// between. A client then gets their events before the events of older transactions.
    pub(super) fn set_watches(
        &mut self,
        id: ConnectionId,
        at: usize,
        seen: i64,
        watches: [&[String]; 3],
    ) {
        let kinds = [Renewed::Data, Renewed::Exists, Renewed::Children];
        let mut renewed: Vec<(&String, Renewed)> = watches
            .into_iter()
            .zip(kinds)
            .flat_map(|(paths, kind)| paths.iter().map(move |path| (path, kind)))
            .collect();
        let interrupted_at = (!self.options.network_delay.end().is_zero()).then(|| {
            self.kernel.rng.shuffle(&mut renewed);
            self.kernel.rng.usize(..=2 * renewed.len())
        });
        for (index, (path, kind)) in renewed.iter().enumerate() {
            let is_interrupted = interrupted_at == Some(index);
            if is_interrupted && self.members[at].state == MemberState::Serving {
                self.catch_up(at, self.committed);
            }
            // The end of its session may have been among them, which has taken its watches away.
            if !self.ends.contains_key(&id) {
                return;
            }
            let member = &mut self.members[at];
            if let Some(event) = renew_watch(member, id, seen, path, *kind) {
                self.notify(id, (*path).clone(), event);
            }
        }
    }
}

/// Sets a watch of a session that was resumed, or returns the event that it has missed.
///
/// This is the rule of the server's `DataTree.setWatches`.
fn renew_watch(
    server: &mut Member,
    id: ConnectionId,
    seen: i64,
    path: &str,
    kind: Renewed,
) -> Option<EventType> {
    let node = server.tree.get(path);
    let missed = match (kind, node) {
        (Renewed::Data | Renewed::Children, None) => Some(EventType::NodeDeleted),
        (Renewed::Data, Some(node)) if node.modified() > seen => Some(EventType::NodeDataChanged),
        (Renewed::Exists, Some(_)) => Some(EventType::NodeCreated),
        (Renewed::Children, Some(node)) if node.pzxid > seen => {
            Some(EventType::NodeChildrenChanged)
        }
        _ => None,
    };
    if missed.is_none() {
        let kind = match kind {
            Renewed::Data | Renewed::Exists => WatchKind::Data,
            Renewed::Children => WatchKind::Children,
        };
        server.watches.add(path, kind, id, WatchMode::Once);
    }
    missed
}
