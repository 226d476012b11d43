//! What becomes of a request, and of the watch that it sets.

use tokio::sync::oneshot;
use zookeeper_recipes_core::ensemble::{SessionEnd, TransactionError};

use super::errors::{outcome_unknown, refused};
use super::state::{InFlight, Kind, Settled, Watcher};
use super::watch::SimulatedWatch;
use super::world::World;
use crate::record::trace::TraceKind;
use crate::wire::answer::{Answer, Failure};
use crate::wire::connection::ClientId;
use crate::wire::request::Request;
use crate::wire::watch_kind::WatchKind;

impl World {
    pub(super) fn settle(
        &mut self,
        id: ClientId,
        request: u64,
        zxid: i64,
        result: Result<Answer, Failure>,
    ) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.in_flight.front().is_none_or(|it| it.id != request) {
            return;
        }
        let Some(in_flight) = client.in_flight.pop_front() else {
            return;
        };
        match in_flight.request {
            Request::Ping => {
                client.pinging = false;
                if result == Err(Failure::SessionExpired) {
                    self.end(id, SessionEnd::Expired);
                }
            }
            Request::SetWatches { .. } => self.watches_stand(id, zxid),
            _ => {
                client.seen = client.seen.max(zxid);
                self.settle_asked(id, in_flight, result);
            }
        }
    }

    /// Settles a request that somebody has asked for, or the end of the session.
    fn settle_asked(&mut self, id: ClientId, in_flight: InFlight, result: Result<Answer, Failure>) {
        self.trace_client(TraceKind::Reply, id, || match &result {
            Ok(answer) => format!("{}: {}", in_flight.request.text(), answer.text()),
            Err(failure) => format!("{}: {failure:?}", in_flight.request.text()),
        });
        if result == Err(Failure::SessionExpired) {
            // The client ends the session before it fails the requests in flight.
            if let Some(client) = self.clients.get_mut(&id) {
                client.in_flight.push_front(in_flight);
            }
            self.end(id, SessionEnd::Expired);
            return;
        }
        if matches!(in_flight.request, Request::CloseSession) {
            self.end(id, SessionEnd::Closed);
            return;
        }
        let watch = self.settle_watch(id, &in_flight.request, &result);
        if let Some(responder) = in_flight.responder {
            self.kernel().send(responder, settled(result, watch));
        }
    }

    /// All watches of the session stand on the new connection.
    fn watches_stand(&mut self, id: ClientId, zxid: i64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.deadline = None;
        client.attempts = 0;
        client.seen = client.seen.max(zxid);
        self.flush(id);
    }

    /// Notes the watch that a request has set, or that it has set none.
    fn settle_watch(
        &mut self,
        id: ClientId,
        request: &Request,
        result: &Result<Answer, Failure>,
    ) -> Option<SimulatedWatch> {
        let (path, table) = request.watch()?;
        let client = self.clients.get_mut(&id)?;
        let key = (path.to_owned(), table);
        let last = match client.watching.get_mut(&key) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            _ => {
                client.watching.remove(&key);
                true
            }
        };
        let kind = match result {
            Ok(Answer::Children(_)) => Kind::Children,
            Ok(Answer::Exists(None)) => Kind::Exists,
            Ok(_) => Kind::Data,
            Err(_) if last => {
                self.unwatch_deferred(id, path, table);
                return None;
            }
            Err(_) => return None,
        };
        client
            .unwatching
            .retain(|(on, kind)| on != path || (kind.is_some() && *kind != Some(table)));
        let (sender, receiver) = oneshot::channel();
        let watcher = client.next_watcher;
        client.next_watcher += 1;
        let watchers = client.watchers.entry(path.to_owned()).or_default();
        watchers.push(Watcher {
            id: watcher,
            kind,
            sender,
        });
        let (watching, path) = (self.watching.clone(), path.to_owned());
        Some(SimulatedWatch::new(watching, id, path, watcher, receiver))
    }

    /// Takes off the watches that were dropped while a request was under way which might have set
    /// another.
    fn unwatch_deferred(&mut self, id: ClientId, path: &str, table: WatchKind) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let idle = !client.will_watch(path);
        let mut due = Vec::new();
        client.unwatching.retain(|(on, kind)| {
            let now = on == path && (*kind == Some(table) || (kind.is_none() && idle));
            if now {
                due.push((on.clone(), *kind));
            }
            !now
        });
        for (path, kind) in due {
            self.transmit(id, Request::RemoveWatch { path, kind }, None);
        }
    }
}

/// What the caller of the interface is told.
fn settled(
    result: Result<Answer, Failure>,
    watch: Option<SimulatedWatch>,
) -> Result<Settled, TransactionError> {
    match result {
        Ok(answer) => Ok(Settled { answer, watch }),
        Err(Failure::Refused { operation, refusal }) => Err(refused(operation, refusal)),
        Err(failure) => Err(outcome_unknown(&format!("{failure:?}"))),
    }
}
