//! How a client finds a server.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::SessionEnd;

use super::action::Action;
use super::state::{Client, Kind};
use super::world::World;
use crate::record::trace::TraceKind;
use crate::wire::connection::ClientId;
use crate::wire::greeting::Greeting;
use crate::wire::message::Upward;
use crate::wire::request::Request;

impl World {
    pub(crate) fn reconnect(&mut self, id: ClientId, attempt: u64) {
        let now = self.now();
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.attempt != attempt || client.has_ended().is_some() {
            return;
        }
        if self.processes[client.process].is_still() {
            client.reconnect_missed = true;
            return;
        }
        let server = client.next_server();
        let failed = Action::AttemptFailed {
            client: id,
            attempt,
        };
        let host = &self.servers.network.hosts[client.process];
        if now < host.mute_until.max(host.deaf_until) {
            // Nobody answers the knock at all.
            let patience = client.timeout * 2 / 5;
            self.after(patience, failed);
            return;
        }
        if self.servers.is_down(server) {
            let delay = self.servers.network.draw_delay(&mut self.servers.kernel);
            self.after(delay, failed);
            return;
        }
        let network = &mut self.servers.network;
        let connection = network.connect(id, client.process, server);
        client.connection = Some(connection);
        client.last_heard = now;
        client.last_sent = now;
        let connect = Upward::Connect {
            session: (client.session != 0).then_some(client.session),
            seen: client.seen,
            greeting: Greeting::of(client.identities.clone()),
        };
        self.trace_client(TraceKind::Connection, id, || {
            format!("connecting to server {server}")
        });
        self.send_up(connection, connect, Duration::ZERO);
        self.watch_anew(id);
        self.arm_timer(id);
    }

    /// Sends the watches that the client knows of on a new connection.
    fn watch_anew(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let (mut data, mut exists, mut children) = (Vec::new(), Vec::new(), Vec::new());
        for (path, watchers) in &client.watchers {
            for (kind, paths) in [
                (Kind::Data, &mut data),
                (Kind::Exists, &mut exists),
                (Kind::Children, &mut children),
            ] {
                if watchers.iter().any(|watcher| watcher.kind == kind) {
                    paths.push(path.clone());
                }
            }
        }
        if data.is_empty() && exists.is_empty() && children.is_empty() {
            return;
        }
        let zxid = client.seen;
        let request = Request::SetWatches {
            zxid,
            data,
            exists,
            children,
        };
        self.transmit(id, request, None);
    }

    pub(crate) fn attempt_failed(&mut self, id: ClientId, attempt: u64) {
        let now = self.now();
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.attempt != attempt || client.has_ended().is_some() {
            return;
        }
        if self.processes[client.process].is_still() {
            client.reconnect_missed = true;
            return;
        }
        if client.deadline.is_some_and(|deadline| now >= deadline) {
            self.end(id, SessionEnd::Expired);
            return;
        }
        client.attempts += 1;
        client.attempt += 1;
        let next = client.attempt;
        let at = now + pause(client, &mut self.servers.kernel.rng);
        let at = client
            .deadline
            .map_or(at, |deadline| at.min(deadline.max(now)));
        let reconnect = Action::Reconnect {
            client: id,
            attempt: next,
        };
        self.schedule(at, reconnect);
    }
}

/// How long a client waits before its next attempt.
fn pause(client: &Client, rng: &mut fastrand::Rng) -> Duration {
    let hosts = client.hosts.len() as u64;
    let (cycle, offset) = (client.attempts / hosts, client.attempts % hosts);
    if cycle == 0 {
        Duration::ZERO
    } else if offset == 0 {
        let base = Duration::from_millis((100 * hosts).min(1000));
        base.saturating_mul(2_u32.saturating_pow(cycle as u32 - 1))
            + Duration::from_millis(rng.u64(0..100))
    } else {
        Duration::from_millis(50 * offset + rng.u64(0..50))
    }
}
