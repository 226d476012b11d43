//! What a client sends on a connection, and the faults that happen to it.

use std::time::Duration;

use super::process::ProcessId;
use super::world::World;
use crate::chance::fault::{Fault, FaultKind};
use crate::record::request_kind::RequestKind;
use crate::record::trace::TraceKind;
use crate::wire::message::{Arriving, Upward};
use crate::wire::network::ConnectionId;

impl World {
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
        process: ProcessId,
        connection: ConnectionId,
        mut arriving: Arriving,
        faults: Vec<Fault>,
    ) {
        let mut late = Duration::ZERO;
        let mut lost = false;
        let mut sleep = None;
        for fault in faults {
            self.trace_connection(TraceKind::Fault, connection, || {
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
            if fault.reconnect_to.is_some() {
                self.processes[process].reconnects_to = fault.reconnect_to;
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

    /// Loses what is sent now, and breaks the connection.
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

    /// Rolls the dice for the faults of one request.
    pub(super) fn roll_for_request(&mut self, request: RequestKind, faults: &mut Vec<Fault>) {
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
