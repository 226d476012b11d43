//! The processor time of a process.
//!
//! Client and server share the processors with each other and with other processes. So the
//! processor time says more about the cost of a turn than the time that the turn takes.

use std::fs;
use std::ops::AddAssign;
use std::time::Duration;

use crate::peer::Peer;
use crate::row::Row;

/// The processor time of all threads of a process since it began; `None` if the system does not
/// tell. The system counts in steps, usually of 10 ms.
pub(crate) fn processor_time(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name, in parentheses. It may contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some(Duration::from_secs_f64(
        (user + system) as f64 / ticks as f64,
    ))
}

/// The processor time of some turns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) turns: u64,
    /// The time of the library's process.
    pub(crate) client: Duration,
    /// The time of the server.
    pub(crate) server: Duration,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.turns += other.turns;
        self.client += other.client;
        self.server += other.server;
    }
}

/// The processor time of all rounds together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs {
    costs: Vec<(Row, Peer, Cost)>,
}

impl Costs {
    pub(crate) fn add(&mut self, row: Row, peer: Peer, cost: Cost) {
        let mut costs = self.costs.iter_mut();
        match costs.find(|(of_row, of_peer, _)| (*of_row, *of_peer) == (row, peer)) {
            Some((_, _, costs)) => *costs += cost,
            None => self.costs.push((row, peer, cost)),
        }
    }

    /// The time of the library's process for a turn, in microseconds.
    pub(crate) fn client(&self, row: Row, peer: Peer) -> Option<f64> {
        self.of_a_turn(row, peer, |cost| cost.client)
    }

    /// The time of the server for a turn, in microseconds.
    pub(crate) fn server(&self, row: Row, peer: Peer) -> Option<f64> {
        self.of_a_turn(row, peer, |cost| cost.server)
    }

    fn of_a_turn(&self, row: Row, peer: Peer, time: fn(&Cost) -> Duration) -> Option<f64> {
        let mut costs = self.costs.iter();
        let (_, _, cost) = costs.find(|(of_row, of_peer, _)| (*of_row, *of_peer) == (row, peer))?;
        (cost.turns > 0).then(|| time(cost).as_secs_f64() * 1e6 / cost.turns as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn processor_time_grows_with_work() {
        let before = processor_time(std::process::id()).expect("Linux tells");
        let began = Instant::now();
        let worked = || processor_time(std::process::id()).is_some_and(|after| after > before);
        while !worked() {
            assert!(began.elapsed() < Duration::from_secs(60), "it has worked");
        }
    }

    #[test]
    fn costs_of_rounds_add_up() {
        let mut costs = Costs::default();
        for (turns, client, server) in [(10, 1, 5), (30, 3, 3)] {
            let cost = Cost {
                turns,
                client: Duration::from_millis(client),
                server: Duration::from_millis(server),
            };
            costs.add(Row::Lock, Peer::Ours, cost);
        }
        assert_eq!(costs.client(Row::Lock, Peer::Ours), Some(100.0));
        assert_eq!(costs.server(Row::Lock, Peer::Ours), Some(200.0));
        assert_eq!(costs.server(Row::Lock, Peer::Kazoo), None);
    }
}
