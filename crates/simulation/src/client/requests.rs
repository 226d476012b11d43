//! What a client sends on a connection, and the faults that happen to it.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_protocol::{
    ConnectRequest, DecodeError, FRAME_HEADER, OpCode, RequestHeader,
};

use super::process::ProcessId;
use super::world::World;
use crate::chance::fault::{self, Cut, Fault, FaultKind};
use crate::record::request_kind::RequestKind;
use crate::record::trace::TraceKind;
use crate::server::state::Servers;
use crate::wire::message::{Fate, Upward};
use crate::wire::network::ConnectionId;
use crate::wire::request;

impl World {
    fn count(&mut self, process: ProcessId, kind: RequestKind) {
        let now = self.now();
        let in_this_second = self.processes[process].count_request(now);
        let name = self.name_of(process).to_owned();
        let kernel = self.kernel();
        kernel.gauge.sent(&name, in_this_second);
        kernel.counters.count_request(name, kind);
    }

    /// Sends a frame of a client, which may meet faults, and returns the operation of a request.
    pub(crate) fn send_frame(
        &mut self,
        id: ConnectionId,
        frame: &[u8],
    ) -> Result<Option<OpCode>, DecodeError> {
        let Some(connection) = self.servers.network.connections.get_mut(&id) else {
            return Ok(None);
        };
        let process = connection.host;
        let is_first = !std::mem::replace(&mut connection.greeted, true);
        let mut bytes = Vec::with_capacity(FRAME_HEADER + frame.len());
        bytes.extend((frame.len() as u32).to_be_bytes());
        bytes.extend(frame);
        if is_first {
            ConnectRequest::decode(frame)?;
            self.send_up(id, Upward::Bytes(bytes, Fate::default()), Duration::ZERO);
            return Ok(None);
        }
        let opcode = RequestHeader::peek(frame)?.opcode;
        let kind = RequestKind::of(opcode);
        connection.asked.push_back(kind);
        self.count(process, kind);
        let is_read = self.kernel().recorder.is_on() || !self.faults.is_empty();
        let read = is_read.then(|| request::decode(frame)).transpose()?;
        let body = read.map(|it| it.body);
        let text = || body.as_ref().map(request::text).unwrap_or_default();
        if kind != RequestKind::Ping {
            self.trace_connection(TraceKind::Request, id, text);
        }
        let mut faults = Vec::new();
        if let Some(body) = body.as_ref().filter(|_| !self.faults.is_empty()) {
            let session = SessionId(self.servers.session_on(id));
            let name = &self.servers.network.hosts[process].name;
            let paths = request::paths(body);
            faults = fault::take(&mut self.faults, name, session, kind, &paths);
        }
        if kind.is_asked_for() {
            self.roll_for_request(kind, &mut faults);
        }
        for fault in &faults {
            self.servers.request_meets(id, kind, fault.kind);
            self.trace_connection(TraceKind::Fault, id, || {
                format!("{:?}: {}", fault.kind, text())
            });
        }
        self.transmit_with(process, id, bytes, faults);
        Ok(Some(opcode))
    }

    /// Sends the frame of a request, with these faults.
    fn transmit_with(
        &mut self,
        process: ProcessId,
        connection: ConnectionId,
        mut bytes: Vec<u8>,
        faults: Vec<Fault>,
    ) {
        let mut fate = Fate::default();
        let mut late = Duration::ZERO;
        let mut cut = None;
        let mut sleep = None;
        for fault in faults {
            match fault.kind {
                FaultKind::RequestLost => cut = Some(Cut::Anywhere),
                FaultKind::RequestCut(after) => cut = Some(Cut::After(after)),
                FaultKind::ReplyLost => fate.cut_reply = Some(Cut::Anywhere),
                FaultKind::ReplyCut(after) => fate.cut_reply = Some(Cut::After(after)),
                FaultKind::OutcomeHidden => fate.hide_outcome = true,
                FaultKind::RequestLate(by) => late += by,
                FaultKind::ReplyLate(by) => fate.delay_reply += by,
                FaultKind::SessionExpired => fate.expire = true,
                FaultKind::Asleep(duration) => sleep = Some(duration),
                FaultKind::Throttled => fate.throttled = true,
                FaultKind::CutOff(duration) => fate.cut_off = Some(duration),
            }
            if fault.reconnect_to.is_some() {
                self.processes[process].reconnects_to = fault.reconnect_to;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.draw(bytes.len(), &mut self.kernel().rng));
        }
        self.send_up(connection, Upward::Bytes(bytes, fate), late);
        if cut.is_some() {
            self.reset(connection);
        }
        if let Some(duration) = sleep {
            self.fall_asleep(process, duration);
        }
    }

    /// Loses what is sent from now on, and breaks the connection behind what has been sent.
    fn reset(&mut self, connection: ConnectionId) {
        let Servers {
            kernel, network, ..
        } = &mut self.servers;
        let delay = network.draw_delay(kernel);
        let Some(found) = network.connections.get_mut(&connection) else {
            return;
        };
        found.up_broken = true;
        let at = found.last_up.max(kernel.now + Duration::from_millis(1)) + delay;
        network.break_at(kernel, at, connection, "the connection was reset");
    }

    /// Rolls the dice for the faults of one request.
    fn roll_for_request(&mut self, request: RequestKind, faults: &mut Vec<Fault>) {
        let kernel = self.kernel();
        let rates = kernel.rates.clone();
        for (rate, kind) in [
            (rates.request_lost, FaultKind::RequestLost),
            (rates.throttled, FaultKind::Throttled),
            (rates.reply_lost, FaultKind::ReplyLost),
        ] {
            if kernel.chance(rate) {
                faults.push(Fault::new(kind));
            }
        }
        if kernel.chance(rates.request_late) {
            let by = kernel.draw_up_to(rates.late_by);
            faults.push(Fault::new(FaultKind::RequestLate(by)));
        }
        if kernel.chance(rates.reply_late) {
            let by = kernel.draw_up_to(rates.late_by);
            faults.push(Fault::new(FaultKind::ReplyLate(by)));
        }
        if request.is_write() && kernel.chance(rates.outcome_hidden) {
            faults.push(Fault::new(FaultKind::OutcomeHidden));
        }
    }
}
