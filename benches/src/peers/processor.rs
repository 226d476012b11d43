//! The processor time of a process.
//!
//! Client and server share the processors with each other and with other processes. So the
//! processor time says more about the cost of a turn than the time that the turn takes.

use std::fs;
use std::ops::AddAssign;
use std::time::Duration;

/// The processor time of all threads of a process since it began; `None` if the system does not
/// report it. The system counts in steps, usually of 10 ms.
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

impl Cost {
    /// One of the times for one turn, in microseconds.
    pub(crate) fn of_a_turn(&self, time: Duration) -> Option<f64> {
        (self.turns > 0).then(|| time.as_secs_f64() * 1e6 / self.turns as f64)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.turns += other.turns;
        self.client += other.client;
        self.server += other.server;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn processor_time_grows_with_work() {
        let before = processor_time(std::process::id()).expect("Linux reports it");
        let began = Instant::now();
        let worked = || processor_time(std::process::id()).is_some_and(|after| after > before);
        while !worked() {
            assert!(began.elapsed() < Duration::from_secs(60), "it has worked");
        }
    }

    #[test]
    fn costs_of_rounds_add_up() {
        let mut costs = Cost::default();
        assert_eq!(costs.of_a_turn(costs.client), None);
        for (turns, client, server) in [(10, 1, 5), (30, 3, 3)] {
            costs += Cost {
                turns,
                client: Duration::from_millis(client),
                server: Duration::from_millis(server),
            };
        }
        assert_eq!(costs.of_a_turn(costs.client), Some(100.0));
        assert_eq!(costs.of_a_turn(costs.server), Some(200.0));
    }
}
