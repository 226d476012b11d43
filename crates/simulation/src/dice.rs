//! The dice: what goes wrong by chance, with a request or as time goes by.

use std::time::Duration;

use super::faults::{Fault, FaultKind, Way};
use super::watches::ConnectionId;
use super::world::{Action, World};

impl World {
    /// Rolls the dice for what can go wrong with one request.
    pub(super) fn roll_for_request(&mut self, faults: &mut Vec<Fault>) {
        let rates = &self.rates;
        let (lost, unanswered, throttled) = (rates.request_lost, rates.reply_lost, rates.throttled);
        let (request_late, reply_late, late_by) =
            (rates.request_late, rates.reply_late, rates.late_by);
        if self.chance(lost) {
            faults.push(Fault::new(FaultKind::RequestLost));
        }
        if self.chance(throttled) {
            faults.push(Fault::new(FaultKind::Throttled));
        }
        if self.chance(unanswered) {
            faults.push(Fault::new(FaultKind::ReplyLost));
        }
        if self.chance(request_late) {
            let by = self.draw_up_to(late_by);
            faults.push(Fault::new(FaultKind::RequestLate(by)));
        }
        if self.chance(reply_late) {
            let by = self.draw_up_to(late_by);
            faults.push(Fault::new(FaultKind::ReplyLate(by)));
        }
    }

    fn draw_way(&mut self) -> Way {
        let chance = self.rates.one_way;
        match self.chance(chance) {
            false => Way::Both,
            true if self.rng.bool() => Way::Up,
            true => Way::Down,
        }
    }

    /// Rolls the dice for what can go wrong as time goes by.
    pub(super) fn roll_dice(&mut self) {
        const INTERVAL: Duration = Duration::from_millis(50);
        if !self.rates.any_per_second() {
            self.dice_armed = false;
            return;
        }
        let rates = self.rates.clone();
        let within = INTERVAL.as_secs_f64();
        for process in 0..self.processes.len() {
            if self.chance(rates.asleep * within) {
                let duration = self.draw_up_to(rates.asleep_for);
                self.fall_asleep(process, duration);
            }
            if self.chance(rates.blocked * within) {
                let duration = self.draw_up_to(rates.blocked_for);
                self.block(process, duration);
            }
            if self.chance(rates.partitioned * within) {
                let duration = self.draw_up_to(rates.partitioned_for);
                let way = self.draw_way();
                self.partition(process, way, duration);
            }
        }
        let clients: Vec<(i64, Option<ConnectionId>)> = self
            .clients
            .values()
            .map(|client| (client.session, client.connection))
            .collect();
        for (session, connection) in clients {
            if self.chance(rates.disconnected * within) {
                if let Some(connection) = connection {
                    self.cut(connection);
                }
            }
            if self.chance(rates.expired * within) {
                self.expire(session);
            }
        }
        if self.chance(rates.stalled * within) {
            let duration = self.draw_up_to(rates.stalled_for);
            self.stall(duration);
        }
        for server in 0..self.servers.len() {
            if self.chance(rates.paused * within) {
                let duration = self.draw_up_to(rates.paused_for);
                self.pause_server(server, duration);
            }
            if self.chance(rates.cut_off * within) {
                let duration = self.draw_up_to(rates.cut_off_for);
                let way = self.draw_way();
                self.cut_off(server, way, duration);
            }
        }
        if self.chance(rates.isolated * within) {
            let duration = self.draw_up_to(rates.isolated_for);
            self.isolate(duration);
        }
        if self.chance(rates.elected * within) && self.servers.len() > 1 {
            let server = self.rng.usize(0..self.servers.len());
            let duration = self.draw_up_to(rates.elected_within);
            self.elect(server, duration);
        }
        self.after(INTERVAL, Action::RollDice);
    }
}
