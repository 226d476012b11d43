//! The lease: until when, by our own clock, the server cannot have expired the session.
//!
//! The server expires a session when nothing has come from it for the session timeout. So from
//! the *sending* of a request that was answered through the leader, the session is safe for that
//! long, less a margin for the way the news takes to the leader. What the client library reports
//! comes later than that (it declares expiry after 7/5 of the timeout), and after a pause of the
//! process it comes too late altogether; a look at the clock does not.

use std::time::Duration;

/// A lease that has lapsed once stays lapsed for those who held under it, even if the session
/// turns out to have survived and the lease is renewed: they are told apart by the count.
#[derive(Debug)]
pub(crate) struct Lease {
    timeout: Duration,
    margin: Duration,
    valid_until: Duration,
    lapsed: bool,
    lapses: u64,
    /// When the request was sent that was the first to be answered after the lapse.
    first_answered: Option<Duration>,
}

impl Lease {
    /// The lease of a session that was asked for at `asked_at`.
    pub(crate) fn new(asked_at: Duration, timeout: Duration, margin: Duration) -> Lease {
        Lease {
            timeout,
            margin,
            valid_until: asked_at + timeout - margin,
            lapsed: false,
            lapses: 0,
            first_answered: None,
        }
    }

    /// Looks at the clock: how often the lease has lapsed so far, and whether it has now.
    pub(crate) fn look(&mut self, now: Duration) -> (u64, bool) {
        if now >= self.valid_until && !self.lapsed {
            self.lapsed = true;
            self.lapses += 1;
        }
        (self.lapses, self.lapsed)
    }

    /// Takes in that a request sent at `sent` was answered through the leader.
    ///
    /// While the lease runs, that renews it; the clock is looked at first, so that a lapse in
    /// between is not lost. Once it has lapsed, one answer is not enough: a follower tells the
    /// leader only in its own time that the session has spoken, and until then the leader may
    /// expire it. It takes another answer, to a request that was sent after the leader must have
    /// been told of the first, and before that has become too old in its turn.
    pub(crate) fn renew(&mut self, now: Duration, sent: Duration) {
        self.look(now);
        if self.lapsed && !self.is_second_answer(now, sent) {
            return;
        }
        self.first_answered = None;
        self.valid_until = self.valid_until.max(sent + self.timeout - self.margin);
        self.lapsed = now >= self.valid_until;
    }

    fn is_second_answer(&mut self, now: Duration, sent: Duration) -> bool {
        // The rest of the margin is for the time between two probes.
        let told_within = self.margin.saturating_sub(self.timeout / 6);
        match self.first_answered {
            Some(first) if now > first + self.timeout - told_within => {
                self.first_answered = Some(sent);
                false
            }
            Some(first) => sent >= first + self.margin,
            None => {
                self.first_answered = Some(sent);
                false
            }
        }
    }

    pub(crate) fn valid_until(&self) -> Duration {
        self.valid_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Runs for four seconds from the sending of a request.
    fn lease() -> Lease {
        Lease::new(Duration::ZERO, 6 * SECOND, 2 * SECOND)
    }

    #[test]
    fn a_lease_lapses_once_its_time_has_come() {
        let mut lease = lease();
        assert_eq!(lease.look(3 * SECOND), (0, false));
        assert_eq!(lease.look(4 * SECOND), (1, true));
        assert_eq!(lease.look(9 * SECOND), (1, true));
    }

    #[test]
    fn a_renewed_lease_does_not_hide_the_lapse() {
        let mut lease = lease();
        lease.renew(6 * SECOND, 5 * SECOND);
        lease.renew(8 * SECOND, 7 * SECOND);
        assert_eq!(lease.look(8 * SECOND), (1, false));
    }

    #[test]
    fn a_lapsed_lease_is_renewed_once_the_leader_has_been_told() {
        let mut lease = lease();
        lease.renew(5 * SECOND, 5 * SECOND);
        assert_eq!(lease.look(5 * SECOND), (1, true));
        lease.renew(6 * SECOND, 6 * SECOND);
        assert_eq!(lease.look(6 * SECOND), (1, true));
        lease.renew(7 * SECOND, 7 * SECOND);
        assert_eq!(lease.look(7 * SECOND), (1, false));
        assert_eq!(lease.valid_until(), 11 * SECOND);
    }

    #[test]
    fn answers_too_far_apart_do_not_renew_a_lapsed_lease() {
        let mut lease = lease();
        lease.renew(5 * SECOND, 5 * SECOND);
        lease.renew(11 * SECOND, 11 * SECOND);
        assert_eq!(lease.look(11 * SECOND), (1, true));
        lease.renew(13 * SECOND, 13 * SECOND);
        assert_eq!(lease.look(13 * SECOND), (1, false));
    }

    #[test]
    fn an_answer_that_took_too_long_renews_nothing() {
        let mut lease = lease();
        lease.renew(6 * SECOND, SECOND);
        assert_eq!(lease.look(6 * SECOND), (1, true));
    }

    #[test]
    fn an_older_answer_does_not_shorten_the_lease() {
        let mut lease = lease();
        lease.renew(SECOND, SECOND);
        lease.renew(2 * SECOND, Duration::ZERO);
        assert_eq!(lease.look(4 * SECOND), (0, false));
    }
}
