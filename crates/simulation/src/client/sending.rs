//! What a client sends: requests, each with the faults that befall it.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::{SessionEnd, SessionId};

use super::errors::session_over;
use super::state::{InFlight, Responder};
use super::world::World;
use crate::chance::injected::{Fault, FaultKind};
use crate::process::machine::ProcessId;
use crate::record::request_kind::RequestKind;
use crate::record::trace::TraceKind;
use crate::wire::connection::{ClientId, ConnectionId};
use crate::wire::message::{Arriving, Upward};
use crate::wire::request::Request;

impl World {
    pub(crate) fn ask(&mut self, id: ClientId, request: Request, responder: Responder) {
        let Some(client) = self.clients.get_mut(&id) else {
            let closed = Err(session_over(SessionEnd::Closed));
            self.kernel().send(responder, closed);
            return;
        };
        if let Some(end) = client.has_ended() {
            self.kernel().send(responder, Err(session_over(end)));
            return;
        }
        client.pending.push_back((request, responder));
        self.flush(id);
    }

    /// Sends the waiting requests, if they can be sent.
    pub(super) fn flush(&mut self, id: ClientId) {
        loop {
            let Some(client) = self.clients.get_mut(&id) else {
                return;
            };
            if !client.is_ready() || self.processes[client.process].is_still() {
                return;
            }
            match client.pending.pop_front() {
                // Looked at only now: an earlier request may be about to set a watch.
                Some((Request::RemoveWatch { path, kind }, _)) => self.unwatch(id, path, kind),
                Some((request, responder)) => self.transmit(id, request, Some(responder)),
                None => break,
            }
        }
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let closes = client
            .in_flight
            .iter()
            .any(|it| matches!(it.request, Request::CloseSession));
        if client.closing && !closes {
            self.transmit(id, Request::CloseSession, None);
        }
    }

    pub(super) fn transmit(
        &mut self,
        id: ClientId,
        request: Request,
        responder: Option<Responder>,
    ) {
        let now = self.now();
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(connection) = client.connection else {
            return;
        };
        let request_id = client.next_request;
        client.next_request += 1;
        client.last_sent = now;
        if let Some((path, kind)) = request.watch() {
            *client.watching.entry((path.to_owned(), kind)).or_default() += 1;
        }
        let (process, session) = (client.process, client.session);
        client.in_flight.push_back(InFlight {
            id: request_id,
            request: request.clone(),
            responder,
        });
        let kind = request.kind();
        self.count(process, kind);
        if kind != RequestKind::Ping {
            self.trace_client(TraceKind::Request, id, || request.text());
        }
        let name = &self.servers.network.hosts[process].name;
        let session = SessionId(session);
        let mut faults = self.faults.take(name, session, kind, &request.paths());
        if kind.is_asked_for() {
            self.roll_for_request(&mut faults);
            self.roll_for_outcome(request.kind(), &mut faults);
        }
        let arriving = Arriving::new(request_id, request);
        self.transmit_with(id, process, connection, arriving, faults);
    }

    pub(super) fn count(&mut self, process: ProcessId, kind: RequestKind) {
        let now = self.now();
        let in_this_second = self.processes[process].count_request(now);
        let name = self.name_of(process).to_owned();
        let kernel = self.kernel();
        kernel.gauge.sent(&name, in_this_second);
        kernel.counters.count_request(name, kind);
    }

    /// Sends a request, with these faults.
    pub(super) fn transmit_with(
        &mut self,
        id: ClientId,
        process: ProcessId,
        connection: ConnectionId,
        mut arriving: Arriving,
        faults: Vec<Fault>,
    ) {
        let mut late = Duration::ZERO;
        let mut lost = false;
        let mut sleep = None;
        for fault in faults {
            self.trace_client(TraceKind::Fault, id, || {
                format!("{:?}: {}", fault.kind, arriving.request.text())
            });
            match fault.kind {
                FaultKind::RequestLost => lost = true,
                FaultKind::ReplyLost => arriving.lose_reply = true,
                FaultKind::OutcomeHidden => arriving.hide_outcome = true,
                FaultKind::RequestLate(by) => late += by,
                FaultKind::ReplyLate(by) => arriving.delay_reply += by,
                FaultKind::SessionExpired => arriving.expire = true,
                FaultKind::Asleep(duration) => sleep = Some(duration),
                FaultKind::Throttled => arriving.throttled = true,
                FaultKind::CutOff(duration) => arriving.cut_off = Some(duration),
            }
            if let (Some(server), Some(client)) = (fault.reconnect_to, self.clients.get_mut(&id)) {
                client.preferred = Some(server % self.servers.members.len());
            }
        }
        if lost {
            self.lose(connection);
        } else {
            self.send_up(connection, Upward::Request(arriving), late);
        }
        if let Some(duration) = sleep {
            self.fall_asleep(process, duration);
        }
    }

    /// What is sent now never arrives, and the connection breaks.
    fn lose(&mut self, connection: ConnectionId) {
        let servers = &mut self.servers;
        if let Some(found) = servers.network.connections.get_mut(&connection) {
            found.up_broken = true;
        }
        let now = servers.kernel.now;
        let delay = servers.network.draw_delay(&mut servers.kernel);
        let found = servers.network.connections.get(&connection);
        let sent = found.map_or(now, |it| it.last_up);
        let at = sent.max(now + Duration::from_millis(1)) + delay;
        let cause = "the connection was reset";
        servers
            .network
            .break_at(&mut servers.kernel, at, connection, cause);
    }
}
