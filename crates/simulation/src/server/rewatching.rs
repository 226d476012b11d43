//! The watches of a session that has come back.

use zookeeper_recipes_core::ensemble::Event;

use super::member::{Member, MemberState};
use super::state::Servers;
use crate::wire::connection::ConnectionId;
use crate::wire::read::WatchesToSet;
use crate::wire::watch_kind::WatchKind;

/// A watch that a session which has come back sets again.
#[derive(Clone, Copy)]
enum Renewed {
    Data,
    Exists,
    Children,
}

impl Servers {
    /// Sets watches again one by one, in any order. Transactions may be applied in between, so that
    /// what has come of them is told before what came of older ones.
    ///
    /// The paths are those with a watch on data, on existence, and on children.
    pub(super) fn set_watches(
        &mut self,
        id: ConnectionId,
        at: usize,
        seen: i64,
        [data, exists, children]: [&Vec<String>; 3],
    ) {
        let mut renewed: Vec<(&String, Renewed)> = [
            (data, Renewed::Data),
            (exists, Renewed::Exists),
            (children, Renewed::Children),
        ]
        .into_iter()
        .flat_map(|(paths, kind)| paths.iter().map(move |path| (path, kind)))
        .collect();
        self.kernel.rng.shuffle(&mut renewed);
        let interrupted_at = self.kernel.rng.usize(..=2 * renewed.len());
        for (index, (path, kind)) in renewed.iter().enumerate() {
            if index == interrupted_at && self.members[at].state == MemberState::Serving {
                self.catch_up(at, self.committed);
            }
            // The end of its session may have been among them, which has taken its watches away.
            if !self.ends.contains_key(&id) {
                return;
            }
            if let Some(event) = renew_watch(&mut self.members[at], id, seen, path, *kind) {
                self.notify(id, (*path).clone(), event);
            }
        }
    }
}

impl Servers {
    /// Sets watches again one after the other, as the server does when nothing comes in between.
    pub(super) fn set_watches_in_order(
        &mut self,
        id: ConnectionId,
        at: usize,
        watches: &WatchesToSet,
    ) {
        let renewed = [
            (&watches.data, Renewed::Data),
            (&watches.exists, Renewed::Exists),
            (&watches.children, Renewed::Children),
        ];
        for (paths, kind) in renewed {
            for path in paths {
                let member = &mut self.members[at];
                if let Some(event) = renew_watch(member, id, watches.seen, path, kind) {
                    self.notify(id, path.clone(), event);
                }
            }
        }
        let watched = &mut self.members[at].watches;
        for (paths, recursive) in [(&watches.persistent, false), (&watches.recursive, true)] {
            for path in paths {
                watched.add_persistent(path, id, recursive);
            }
        }
    }
}

/// Sets a watch of a session that has come back, or tells what it has missed: the rule of the
/// server's `DataTree.setWatches`.
fn renew_watch(
    server: &mut Member,
    id: ConnectionId,
    seen: i64,
    path: &str,
    kind: Renewed,
) -> Option<Event> {
    let node = server.tree.get(path);
    let missed = match (kind, node) {
        (Renewed::Data | Renewed::Children, None) => Some(Event::Deleted),
        (Renewed::Data, Some(node)) if node.modified() > seen => Some(Event::DataChanged),
        (Renewed::Exists, Some(_)) => Some(Event::Created),
        (Renewed::Children, Some(node)) if node.pzxid > seen => Some(Event::ChildrenChanged),
        _ => None,
    };
    if missed.is_none() {
        let kind = match kind {
            Renewed::Data | Renewed::Exists => WatchKind::Data,
            Renewed::Children => WatchKind::Children,
        };
        server.watches.add(path, kind, id);
    }
    missed
}
