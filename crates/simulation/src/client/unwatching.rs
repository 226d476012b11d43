//! Watches that a client takes off.

use tokio::sync::oneshot;

use super::world::World;
use crate::wire::connection::ClientId;
use crate::wire::request::Request;
use crate::wire::watch_kind::WatchKind;

impl World {
    /// A watch was dropped before it had seen anything.
    pub(crate) fn drop_watcher(&mut self, id: ClientId, path: &str, watcher: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(watchers) = client.watchers.get_mut(path) else {
            return;
        };
        let Some(at) = watchers.iter().position(|it| it.id == watcher) else {
            return;
        };
        let table = watchers.remove(at).kind.table();
        let kind = if watchers.is_empty() {
            client.watchers.remove(path);
            client.will_watch(path).then_some(table)
        } else if watchers.iter().any(|it| it.kind.table() == table) {
            return;
        } else {
            Some(table)
        };
        self.unwatch(id, path.to_owned(), kind);
    }

    /// Takes off the watches of a kind on a path, or with no kind all.
    pub(super) fn unwatch(&mut self, id: ClientId, path: String, kind: Option<WatchKind>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if !client.is_ready() {
            // What is not known here is not set anew; but it may be on its way just now.
            if client.connection.is_some() {
                let (responder, _) = oneshot::channel();
                client
                    .pending
                    .push_back((Request::RemoveWatch { path, kind }, responder));
            }
            return;
        }
        let deferred = match kind {
            Some(kind) => client.watching.contains_key(&(path.clone(), kind)),
            None => client.will_watch(&path),
        };
        if deferred {
            client.unwatching.push((path, kind));
            return;
        }
        if self.processes[client.process].is_still() {
            let (responder, _) = oneshot::channel();
            client
                .pending
                .push_back((Request::RemoveWatch { path, kind }, responder));
            return;
        }
        self.transmit(id, Request::RemoveWatch { path, kind }, None);
    }
}
