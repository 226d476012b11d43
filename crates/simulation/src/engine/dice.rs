//! The dice: faults that happen by chance, per second.

use std::time::Duration;

use crate::chance::fault::Way;
use crate::chance::rates::FaultRates;
use crate::client::world::{Action, World};
use crate::wire::network::ConnectionId;

/// How often the dice are rolled.
const INTERVAL: Duration = Duration::from_millis(50);

impl World {
    pub(super) fn roll_dice(&mut self) {
        let rates = self.kernel().rates.clone();
        if !rates.any_per_second() {
            self.dice_armed = false;
            return;
        }
        self.roll_for_processes(&rates);
        self.roll_for_sessions(&rates);
        self.roll_for_servers(&rates);
        self.after(INTERVAL, Action::RollDice);
    }

    /// True if a fault of this rate happens in this interval.
    fn happens(&mut self, per_second: f64) -> bool {
        self.kernel().chance(per_second * INTERVAL.as_secs_f64())
    }

    /// The random length of a fault, if one happens in this interval.
    fn happens_for(&mut self, per_second: f64, longest: Duration) -> Option<Duration> {
        let happens = self.happens(per_second);
        happens.then(|| self.kernel().draw_up_to(longest))
    }

    fn draw_way(&mut self) -> Way {
        let kernel = self.kernel();
        match kernel.chance(kernel.rates.one_way) {
            false => Way::Both,
            true if kernel.rng.bool() => Way::Up,
            true => Way::Down,
        }
    }

    fn roll_for_processes(&mut self, rates: &FaultRates) {
        for process in 0..self.processes.len() {
            if let Some(duration) = self.happens_for(rates.asleep, rates.asleep_for) {
                self.fall_asleep(process, duration);
            }
            if let Some(duration) = self.happens_for(rates.blocked, rates.blocked_for) {
                self.block(process, duration);
            }
            if let Some(duration) = self.happens_for(rates.partitioned, rates.partitioned_for) {
                let way = self.draw_way();
                self.partition(process, way, duration);
            }
            if let Some(duration) = self.happens_for(rates.path_long, rates.path_long_for) {
                let by = self.kernel().draw_up_to(rates.path_longer_by);
                self.lengthen_path(process, by, duration);
            }
        }
    }

    fn roll_for_sessions(&mut self, rates: &FaultRates) {
        let connections: Vec<ConnectionId> = self.peers.keys().copied().collect();
        for connection in connections {
            if self.happens(rates.disconnected) {
                self.cut(connection);
            }
        }
        let sessions: Vec<i64> = self.servers.sessions.keys().copied().collect();
        for session in sessions {
            if self.happens(rates.expired) {
                self.servers.expire(session);
            }
        }
    }

    /// One server or all answer requests for a session late, by the same time or by random times.
    fn overload(&mut self, longest: Duration, duration: Duration) {
        let count = self.servers.members.len();
        let kernel = self.kernel();
        let by = kernel.draw_up_to(longest);
        let least = if kernel.rng.bool() {
            by
        } else {
            Duration::ZERO
        };
        let servers = match kernel.rng.bool() {
            true => 0..count,
            false => {
                let one = kernel.rng.usize(0..count);
                one..one + 1
            }
        };
        for server in servers {
            self.servers.slow_handshakes(server, least..=by, duration);
        }
    }

    fn roll_for_servers(&mut self, rates: &FaultRates) {
        let count = self.servers.members.len();
        if let Some(duration) = self.happens_for(rates.stalled, rates.stalled_for) {
            self.servers.stall(duration);
        }
        for server in 0..count {
            if self.happens(rates.moved) {
                self.move_member(server);
            }
            if let Some(duration) = self.happens_for(rates.paused, rates.paused_for) {
                self.servers.pause_server(server, duration);
            }
            if let Some(duration) = self.happens_for(rates.cut_off, rates.cut_off_for) {
                let way = self.draw_way();
                self.servers.cut_off(server, way, duration);
            }
        }
        if let Some(duration) = self.happens_for(rates.isolated, rates.isolated_for) {
            self.servers.isolate(duration);
        }
        if let Some(duration) = self.happens_for(rates.overloaded, rates.overloaded_for) {
            self.overload(rates.handshakes_late_by, duration);
        }
        if self.happens(rates.elected) && count > 1 {
            let server = self.kernel().rng.usize(0..count);
            let duration = self.kernel().draw_up_to(rates.elected_within);
            self.servers.elect(server, duration);
        }
    }
}
