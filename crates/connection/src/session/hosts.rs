//! Which host to try next, and when.

use std::time::Duration;

use fastrand::Rng;

/// The longest pause after the first round over the hosts that failed.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause between two rounds.
const LONGEST: Duration = Duration::from_secs(2);
/// The longest pause before a broken connection is replaced.
///
/// A member that dies breaks the connections of many sessions at the same moment.
const AFTER_A_BREAK: Duration = Duration::from_millis(50);

/// The longest pause between two rounds, for this session timeout.
pub(crate) fn longest_pause(session_timeout: Duration) -> Duration {
    LONGEST.min(session_timeout / 6)
}

/// The hosts of the ensemble in the order of the tries, and the pauses between the tries.
///
/// Each pause is drawn from zero to its limit ("full jitter"), so that the sessions of many
/// processes do not come back at the same moment.
#[derive(Debug)]
pub(crate) struct Hosts {
    order: Vec<usize>,
    /// The place in `order` of the next try.
    next: usize,
    /// How many tries have failed since a session was last confirmed.
    failed: u32,
    random: Rng,
}

impl Hosts {
    /// `number` hosts, in an order that is drawn from `seed`.
    pub(crate) fn new(number: usize, seed: u64) -> Hosts {
        let mut random = Rng::with_seed(seed);
        let mut order: Vec<usize> = (0..number).collect();
        random.shuffle(&mut order);
        Hosts {
            order,
            next: 0,
            failed: 0,
            random,
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.order.len()
    }

    /// The host to try next.
    pub(crate) fn next(&mut self) -> usize {
        let host = self.order.get(self.next).copied().unwrap_or_default();
        self.next = (self.next + 1) % self.order.len().max(1);
        host
    }

    /// Notes that a connection has lasted for the longest pause, and has answered a request.
    pub(crate) fn confirmed(&mut self) {
        self.failed = 0;
    }

    /// The pause before the next try, after a try that failed.
    ///
    /// There is no pause before each host was tried. The limit of the pause then doubles with each
    /// round. It is at most a sixth of the session timeout, so that no pause loses the session.
    pub(crate) fn pause_after_failure(&mut self, session_timeout: Duration) -> Duration {
        self.failed = self.failed.saturating_add(1);
        let hosts = u32::try_from(self.order.len().max(1)).unwrap_or(u32::MAX);
        let Some(round) = (self.failed / hosts).checked_sub(1) else {
            return Duration::ZERO;
        };
        if self.failed % hosts != 0 {
            return Duration::ZERO;
        }
        let limit = FIRST.saturating_mul(1 << round.min(10));
        self.draw(limit.min(longest_pause(session_timeout)))
    }

    /// The pause before the next try, after a connection that had confirmed the session.
    ///
    /// A server that confirms each session and then breaks it is no reason for a shorter pause than
    /// after other failures.
    pub(crate) fn pause_after_break(&mut self, session_timeout: Duration) -> Duration {
        let pause = self.draw(AFTER_A_BREAK.min(session_timeout / 20));
        if self.failed > 0 {
            return self.pause_after_failure(session_timeout).max(pause);
        }
        self.failed = 1;
        pause
    }

    /// A pause of up to this limit.
    fn draw(&mut self, limit: Duration) -> Duration {
        let nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.u64(0..=nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_secs(30);

    #[test]
    fn each_host_is_tried_before_the_first_pause() {
        let mut hosts = Hosts::new(3, 7);
        let mut tried = vec![hosts.next()];
        assert_eq!(hosts.pause_after_failure(T), Duration::ZERO);
        tried.push(hosts.next());
        assert_eq!(hosts.pause_after_failure(T), Duration::ZERO);
        tried.push(hosts.next());
        tried.sort_unstable();
        assert_eq!(tried, [0, 1, 2]);
        assert!(hosts.pause_after_failure(T) <= FIRST);
    }

    #[test]
    fn pauses_grow_to_their_limit_and_start_anew_after_a_confirmed_session() {
        let mut longest = Vec::new();
        for round in 0..12 {
            let drawn = (0..500).map(|seed| {
                let mut hosts = Hosts::new(1, seed);
                (0..round).for_each(|_| {
                    let _ = hosts.pause_after_failure(T);
                });
                hosts.pause_after_failure(T)
            });
            longest.push(drawn.max().unwrap_or_default());
        }
        assert!(longest[0] <= FIRST && longest[0] > FIRST / 2);
        assert!(longest[2] > FIRST * 2 && longest[2] <= FIRST * 4);
        assert!(longest[11] <= LONGEST && longest[11] > LONGEST / 2);
        let mut hosts = Hosts::new(1, 1);
        (0..9).for_each(|_| {
            let _ = hosts.pause_after_failure(T);
        });
        hosts.confirmed();
        assert!(hosts.pause_after_failure(T) <= FIRST);
    }

    #[test]
    fn no_pause_is_longer_than_a_sixth_of_the_session_timeout() {
        let short = Duration::from_millis(600);
        for seed in 0..200 {
            let mut hosts = Hosts::new(1, seed);
            assert!((0..20).all(|_| hosts.pause_after_failure(short) <= short / 6));
        }
    }

    #[test]
    fn pause_after_a_break_is_at_most_a_twentieth_of_the_session_timeout() {
        let short = AFTER_A_BREAK * 2;
        for seed in 0..200 {
            let pause = Hosts::new(3, seed).pause_after_break(short);
            assert!(pause <= short / 20, "{pause:?}");
        }
    }

    #[test]
    fn processes_that_lose_one_member_do_not_come_back_at_the_same_moment() {
        let pauses = (0..100).map(|seed| Hosts::new(3, seed).pause_after_break(T));
        let mut pauses: Vec<Duration> = pauses.collect();
        pauses.sort_unstable();
        pauses.dedup();
        assert!(pauses.len() > 90);
    }

    const FLEET: u64 = 2000;

    /// When each process of a fleet tries in vain, and when it comes back, after all members were
    /// lost at the same moment for this long.
    fn fleet(outage: Duration) -> (Vec<Duration>, Vec<Duration>) {
        const REFUSAL: Duration = Duration::from_millis(1);
        let (mut tries, mut returns) = (Vec::new(), Vec::new());
        for seed in 0..FLEET {
            let mut hosts = Hosts::new(3, seed);
            let mut at = hosts.pause_after_break(T);
            while at < outage {
                tries.push(at);
                at += REFUSAL + hosts.pause_after_failure(T);
            }
            returns.push(at);
        }
        (tries, returns)
    }

    /// The most of these moments within one window.
    fn most_within(window: Duration, moments: &[Duration]) -> usize {
        let mut moments = moments.to_vec();
        moments.sort_unstable();
        let until = |from: Duration| moments.partition_point(|at| *at < from + window);
        let within = moments
            .iter()
            .enumerate()
            .map(|(place, at)| until(*at) - place);
        within.max().unwrap_or_default()
    }

    /// A round over the hosts has no pauses, so that a process moves at once if one member dies.
    #[test]
    fn fleet_that_loses_all_members_at_once_does_not_come_back_in_step() {
        let window = Duration::from_millis(10);
        for milliseconds in [50, 100, 200, 500, 1000, 5000, 30_000] {
            let outage = Duration::from_millis(milliseconds);
            let (tries, returns) = fleet(outage);
            let most = most_within(window, &tries) as u64;
            assert!(most < FLEET, "{outage:?}: {most} tries");
            let most = most_within(window, &returns) as u64;
            let share = if milliseconds < 500 { 5 } else { 20 };
            assert!(most < FLEET / share, "{outage:?}: {most} return");
            assert!(returns.iter().all(|at| *at <= outage + LONGEST));
        }
    }
}
