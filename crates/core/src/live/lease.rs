//! The lease: the time until which the server cannot have expired the session.
//!
//! The lease is counted by this process's own clock. [`docs::lease`](crate::docs::lease) says why
//! the rule is safe and what its margin consists of.

use std::collections::VecDeque;
use std::time::Duration;

use crate::server::ensemble::Exchange;

/// The tick that is assumed if the user sets none: ZooKeeper's without a `tickTime` in its
/// configuration.
const USUAL_TICK: Duration = Duration::from_secs(3);

/// The times that a lease counts with: the session timeout, the wait and the margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    timeout: Duration,
    /// The wait. A request sent this long after the answer to a contact confirms the contact.
    wait: Duration,
    /// The lease ends this long before the server could expire the session.
    margin: Duration,
}

impl Terms {
    /// The terms if the user sets the servers' tick.
    pub(crate) fn with_tick(timeout: Duration, tick: Duration) -> Terms {
        Terms {
            timeout,
            wait: tick + timeout / 40,
            margin: tick / 2 + timeout / 40,
        }
    }

    /// The terms if the user does not set the servers' tick.
    ///
    /// If the server has raised the session timeout, half of the timeout is assumed as its tick.
    /// Otherwise the shorter of three seconds and half of the timeout is assumed.
    pub(crate) fn without_tick(timeout: Duration, raised: bool) -> Terms {
        let wait = timeout / 4 + timeout / 40;
        let longest = timeout / 2;
        let tick = if raised {
            longest
        } else {
            longest.min(USUAL_TICK)
        };
        let isolated = (tick * 3 / 2).saturating_sub(wait) + timeout / 20;
        Terms {
            timeout,
            wait,
            margin: isolated.max(timeout / 4),
        }
    }

    /// The interval between two probes.
    ///
    /// The interval is so short that the lease is renewed with two intervals to spare, and that
    /// the client library sends no pings.
    pub(crate) fn probe_interval(&self) -> Duration {
        (self.spare() / 4).min(self.timeout / 10)
    }

    /// The longest silence of the servers that lapses no lease, if each probe before it is answered
    /// at once.
    ///
    /// A contact is confirmed by the first probe that is sent a wait later, so after a whole number
    /// of intervals. Before the next confirmation it is one interval older.
    pub(crate) fn tolerates(&self) -> Duration {
        let probe = self.probe_interval();
        let intervals = self.wait.as_nanos().div_ceil(probe.as_nanos().max(1)) + 1;
        let oldest = probe.saturating_mul(u32::try_from(intervals).unwrap_or(u32::MAX));
        self.timeout
            .saturating_sub(self.margin.saturating_add(oldest))
    }

    /// True if the lease can be renewed before it runs out.
    pub(crate) fn can_be_kept(&self) -> bool {
        self.spare() > self.timeout / 10
    }

    /// The session timeout without the wait and the margin.
    fn spare(&self) -> Duration {
        let counted = self.wait + self.margin;
        self.timeout.saturating_sub(counted)
    }
}

/// How a session began for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// The session was opened, by a request that was sent at this time or later.
    Opened(Duration),
    /// The session was taken over from another process, by a request that was sent at this time or
    /// later.
    Resumed(Duration),
    /// The session was opened at an unknown time.
    Earlier,
}

/// A request that was answered through the leader.
#[derive(Clone, Copy, Debug)]
struct LeaderContact {
    /// When the request was sent.
    sent: Duration,
    /// When the answer came.
    answered: Duration,
}

/// The lease of one session.
///
/// A hold that was granted before a lapse stays lost, even if the lease is renewed later. The
/// count of lapses distinguishes such a hold from a newer one.
#[derive(Debug)]
pub(crate) struct Lease {
    terms: Terms,
    valid_until: Duration,
    lapsed: bool,
    lapses: u64,
    /// When the lease lapsed last.
    lapsed_at: Duration,
    /// Contacts over this connection that are not confirmed yet, oldest first.
    unconfirmed: VecDeque<LeaderContact>,
    /// True if the connection is known to serve this session.
    proven: bool,
    /// The end of the lease if the connection serves this session.
    if_proven: Duration,
    /// The same, but without the contacts over this connection.
    carried_over: Duration,
}

impl Lease {
    /// The lease of a session that began in this way.
    ///
    /// Only the lease of an opened session begins to run at once, over a proven connection.
    pub(crate) fn new(beginning: Beginning, terms: Terms) -> Lease {
        let until = |asked_at| asked_at + terms.timeout - terms.margin;
        let (valid_until, if_proven) = match beginning {
            Beginning::Opened(asked_at) => (until(asked_at), until(asked_at)),
            Beginning::Resumed(asked_at) => (Duration::ZERO, until(asked_at)),
            Beginning::Earlier => (Duration::ZERO, Duration::ZERO),
        };
        Lease {
            terms,
            valid_until,
            lapsed: false,
            lapses: 0,
            lapsed_at: Duration::ZERO,
            unconfirmed: VecDeque::new(),
            proven: matches!(beginning, Beginning::Opened(_)),
            if_proven,
            carried_over: if_proven,
        }
    }

    /// Compares the lease with the clock.
    ///
    /// Returns the number of lapses until now, and true if the lease has lapsed now.
    pub(crate) fn look(&mut self, now: Duration) -> (u64, bool) {
        if now >= self.valid_until && !self.lapsed {
            self.lapsed = true;
            self.lapses += 1;
            self.lapsed_at = self.valid_until;
        }
        self.looked()
    }

    /// What the last look has found.
    pub(crate) fn looked(&self) -> (u64, bool) {
        (self.lapses, self.lapsed)
    }

    /// When the lease lapsed last. Zero if it never has.
    pub(crate) fn lapsed_at(&self) -> Duration {
        self.lapsed_at
    }

    /// Notes that a request was answered through the leader over this connection.
    ///
    /// The request confirms each contact whose answer came at least the wait before the request was
    /// sent. Confirmed contacts renew the lease once the connection is proven.
    pub(crate) fn answered(&mut self, now: Duration, exchange: Exchange) {
        let Exchange { sent, answered, .. } = exchange;
        while let Some(contact) = self.unconfirmed.front() {
            if contact.answered + self.terms.wait > sent {
                break;
            }
            self.if_proven = self.if_proven.max(self.until(contact.sent));
            self.unconfirmed.pop_front();
        }
        // Only the first of several contacts close together is kept, so that the list stays short.
        let grain = self.terms.timeout / 100;
        let is_apart = |last: &LeaderContact| sent >= last.sent + grain;
        if self.unconfirmed.back().is_none_or(is_apart) {
            self.unconfirmed.push_back(LeaderContact { sent, answered });
        }
        self.renew(now);
    }

    /// True if a hold that is granted now lasts until the lease can be renewed.
    pub(crate) fn may_grant(&self, now: Duration) -> bool {
        let oldest = self.unconfirmed.front();
        let answered = oldest.map_or(now, |contact| contact.answered);
        let renewed = answered + self.terms.wait + self.terms.probe_interval();
        self.proven && self.valid_until > renewed.max(now)
    }

    /// Begins a new connection, which is not proven: it may serve another session.
    ///
    /// A reconnect to this session touches the session at the leader. So the reconnect confirms
    /// all contacts over the connection before, if that connection was proven.
    pub(crate) fn connected_anew(&mut self) {
        if self.proven {
            let last = self.unconfirmed.back().map(|last| self.until(last.sent));
            self.carried_over = last.unwrap_or_default().max(self.valid_until);
        }
        self.if_proven = self.carried_over;
        self.unconfirmed.clear();
        self.proven = false;
    }

    /// Notes that the connection serves this session, and renews the lease.
    pub(crate) fn proved(&mut self, now: Duration) {
        self.proven = true;
        self.renew(now);
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.proven
    }

    pub(crate) fn valid_until(&self) -> Duration {
        self.valid_until
    }

    /// The end of the lease by a contact that was sent at this time.
    fn until(&self, contact: Duration) -> Duration {
        contact + self.terms.timeout - self.terms.margin
    }

    fn renew(&mut self, now: Duration) {
        // The renewal must not hide a lapse before it.
        self.look(now);
        if self.proven {
            self.valid_until = self.valid_until.max(self.if_proven);
            self.lapsed = now >= self.valid_until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A lease with a timeout of 10 s, a wait of 2.25 s and a margin of 1.25 s.
    fn lease() -> Lease {
        Lease::new(
            Beginning::Opened(Duration::ZERO),
            Terms::with_tick(10 * SECOND, 2 * SECOND),
        )
    }

    /// A request that was sent at `sent` is answered now.
    fn answered(lease: &mut Lease, now: Duration, sent: Duration) {
        let exchange = Exchange {
            sent,
            answered: now,
            connection: None,
        };
        lease.answered(now, exchange);
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn lease_lapses_once_its_time_has_come() {
        let mut lease = lease();
        assert_eq!(lease.look(seconds(8.7)), (0, false));
        assert_eq!(lease.look(seconds(8.75)), (1, true));
        assert_eq!(lease.look(20 * SECOND), (1, true));
    }

    #[test]
    fn lease_of_a_resumed_session_counts_from_the_request_once_the_connection_is_proven() {
        let terms = Terms::with_tick(10 * SECOND, 2 * SECOND);
        let mut lease = Lease::new(Beginning::Resumed(SECOND), terms);
        assert_eq!(lease.look(2 * SECOND), (1, true));
        assert!(!lease.may_grant(2 * SECOND), "it is not proven");
        lease.connected_anew();
        lease.proved(3 * SECOND);
        assert_eq!(lease.look(3 * SECOND), (1, false));
        assert_eq!(lease.valid_until(), seconds(9.75));
    }

    #[test]
    fn lease_of_a_session_of_unknown_age_begins_with_its_first_confirmed_contact() {
        let mut lease = Lease::new(
            Beginning::Earlier,
            Terms::with_tick(10 * SECOND, 2 * SECOND),
        );
        answered(&mut lease, SECOND, SECOND);
        answered(&mut lease, 4 * SECOND, 4 * SECOND);
        assert_eq!(lease.look(4 * SECOND), (1, true));
        lease.proved(4 * SECOND);
        assert_eq!(lease.look(4 * SECOND), (1, false));
    }

    #[test]
    fn answer_to_a_later_request_renews_by_the_contact_before_it() {
        let mut lease = lease();
        answered(&mut lease, seconds(5.2), 5 * SECOND);
        // The wait is not over, so the first contact is not confirmed.
        answered(&mut lease, seconds(7.4), seconds(7.4));
        assert_eq!(lease.valid_until(), seconds(8.75));
        answered(&mut lease, seconds(7.6), seconds(7.5));
        assert_eq!(lease.valid_until(), seconds(13.75));
    }

    #[test]
    fn renewed_lease_does_not_hide_the_lapse() {
        let mut lease = lease();
        answered(&mut lease, 8 * SECOND, 7 * SECOND);
        answered(&mut lease, 11 * SECOND, 11 * SECOND);
        assert_eq!(lease.look(11 * SECOND), (1, false));
        assert_eq!(lease.valid_until(), seconds(15.75));
    }

    #[test]
    fn nothing_is_granted_that_is_lost_before_the_lease_can_be_renewed() {
        let mut lease = lease();
        assert!(lease.may_grant(5 * SECOND));
        assert!(!lease.may_grant(6 * SECOND));
        answered(&mut lease, 6 * SECOND, 6 * SECOND);
        assert!(!lease.may_grant(7 * SECOND));
        answered(&mut lease, seconds(8.3), seconds(8.3));
        assert!(lease.may_grant(seconds(8.3)));
    }

    #[test]
    fn reconnect_renews_once_the_session_is_proven() {
        let mut lease = lease();
        answered(&mut lease, 6 * SECOND, 5 * SECOND);
        lease.connected_anew();
        assert!(!lease.is_proven());
        assert_eq!(lease.valid_until(), seconds(8.75));
        lease.proved(6 * SECOND);
        assert_eq!(lease.valid_until(), seconds(13.75));
    }

    #[test]
    fn grant_waits_until_the_first_answer_can_renew_the_lease() {
        let mut lease = lease();
        lease.connected_anew();
        answered(&mut lease, 3 * SECOND, 3 * SECOND);
        lease.proved(3 * SECOND);
        // The lease can be renewed at 3 + 2.25 + 1 seconds.
        assert!(lease.may_grant(8 * SECOND));
        let terms = Terms::with_tick(10 * SECOND, 2 * SECOND);
        let mut later = Lease::new(Beginning::Opened(Duration::ZERO), terms);
        later.connected_anew();
        answered(&mut later, seconds(5.6), seconds(5.6));
        later.proved(seconds(5.6));
        assert!(!later.may_grant(seconds(5.6)));
    }

    #[test]
    fn terms_cover_an_isolated_leader_for_the_tick_that_is_assumed() {
        for timeout in (1..=60).map(|seconds| SECOND * seconds) {
            let longest = timeout / 2;
            for (terms, tick) in [
                (Terms::with_tick(timeout, longest), longest),
                (Terms::with_tick(timeout, timeout / 20), timeout / 20),
                (Terms::without_tick(timeout, true), longest),
                (Terms::without_tick(timeout, false), longest.min(USUAL_TICK)),
            ] {
                assert!(terms.wait > tick / 2);
                assert!(terms.margin + terms.wait > tick * 3 / 2);
                assert!(terms.can_be_kept(), "{terms:?}");
            }
        }
    }

    #[test]
    fn terms_of_every_timeout_and_tick_leave_the_lease_positive() {
        let edges = (1..=400).chain([2_999, 6_000, 59_999, 1 << 20, i32::MAX as u64]);
        let edges: Vec<_> = edges.map(Duration::from_millis).collect();
        let pairs = edges
            .iter()
            .flat_map(|timeout| edges.iter().map(move |tick| (timeout, tick)));
        for (&timeout, &tick) in pairs {
            let assumed = [true, false].map(|raised| Terms::without_tick(timeout, raised));
            let set = Some(Terms::with_tick(timeout, tick)).filter(Terms::can_be_kept);
            for terms in assumed.into_iter().chain(set) {
                assert!(terms.can_be_kept() && terms.margin < timeout, "{terms:?}");
                assert!(terms.probe_interval() > Duration::ZERO, "{terms:?}");
                // The lease is renewed with two intervals to spare.
                let renewed = terms.wait + terms.probe_interval() * 2;
                assert!(renewed < timeout - terms.margin, "{terms:?}");
                // The warning of a blocked runtime comes before a hold is lost.
                assert!(terms.probe_interval() <= terms.tolerates() / 2, "{terms:?}");
                let lease = Lease::new(Beginning::Opened(Duration::ZERO), terms);
                assert_eq!(lease.valid_until(), timeout - terms.margin);
            }
        }
    }

    /// What happens to a lease, with times in seconds.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Passes(u32),
        /// The answer to a request that was sent so long ago.
        Answered(u32),
        Connected,
        Proved,
    }

    const STEPS: [Step; 8] = [
        Step::Passes(1),
        Step::Passes(3),
        Step::Passes(9),
        Step::Answered(0),
        Step::Answered(1),
        Step::Answered(4),
        Step::Connected,
        Step::Proved,
    ];

    /// The end of the lease, from all contacts `(sent, answered)` of each connection.
    #[derive(Default)]
    struct Account {
        contacts: Vec<(Duration, Duration)>,
        proven: bool,
        /// The end by the connections before.
        carried: Duration,
        valid_until: Duration,
    }

    impl Account {
        fn renew(&mut self, terms: Terms) {
            let confirms = |answered: Duration| {
                let confirmed_at = answered + terms.wait;
                self.contacts.iter().any(|(sent, _)| *sent >= confirmed_at)
            };
            let confirmed = self
                .contacts
                .iter()
                .filter(|(_, answered)| confirms(*answered));
            let ends = confirmed.map(|(sent, _)| *sent + terms.timeout - terms.margin);
            if self.proven {
                let end = ends.max().unwrap_or_default().max(self.carried);
                self.valid_until = self.valid_until.max(end);
            }
        }

        fn connected(&mut self, terms: Terms) {
            if self.proven {
                let last = self.contacts.iter().map(|(sent, _)| *sent).max();
                let end = last.map(|sent| sent + terms.timeout - terms.margin);
                self.carried = end.unwrap_or_default().max(self.valid_until);
            }
            self.contacts.clear();
            self.proven = false;
        }
    }

    /// Every schedule of six steps, beside the account of all contacts: the lease is no longer, and no
    /// shorter.
    #[test]
    fn lease_ends_when_the_contacts_say() {
        for schedule in 0..STEPS.len().pow(6) {
            let steps = (0..6).map(|at| STEPS[schedule / STEPS.len().pow(at) % STEPS.len()]);
            let (mut lease, mut now) = (lease(), 10 * SECOND);
            let mut account = Account {
                proven: true,
                valid_until: lease.valid_until(),
                carried: lease.valid_until(),
                ..Account::default()
            };
            let (mut lapses, _) = lease.look(now);
            for step in steps.clone() {
                match step {
                    Step::Passes(seconds) => now += SECOND * seconds,
                    Step::Answered(ago) => {
                        let sent = now - SECOND * ago;
                        account.contacts.push((sent, now));
                        answered(&mut lease, now, sent);
                    }
                    Step::Connected => {
                        account.connected(lease.terms);
                        lease.connected_anew();
                    }
                    Step::Proved => {
                        account.proven = true;
                        lease.proved(now);
                    }
                }
                account.renew(lease.terms);
                let (valid, allowed) = (lease.valid_until(), account.valid_until);
                assert_eq!(valid, allowed, "{:?}", steps.collect::<Vec<_>>());
                let (counted, lapsed) = lease.look(now);
                assert!(counted >= lapses && lapsed == (now >= valid));
                assert!(
                    !(lapsed && lease.may_grant(now)),
                    "a lapsed lease grants nothing"
                );
                lapses = counted;
            }
        }
    }
}
