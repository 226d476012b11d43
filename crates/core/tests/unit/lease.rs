//! The lease against an account of all contacts, and its terms for every timeout and tick.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A lease with a timeout of 10 s, a wait of 2.25 s and a margin of 1.25 s.
fn lease() -> Lease {
    lease_of(SessionOrigin::Opened(Duration::ZERO))
}

fn lease_of(origin: SessionOrigin) -> Lease {
    Lease::new(origin, LeaseConfig::with_tick(10 * SECOND, 2 * SECOND))
}

/// A request that was sent at `sent` is answered now.
fn answered(lease: &mut Lease, now: Duration, sent: Duration) {
    let exchange = Exchange {
        sent,
        answered: now,
        connection: None,
    };
    lease.note_answer(now, exchange);
}

fn compared(epoch: u64, has_lapsed: bool) -> LeaseEpochNow {
    let epoch = LeaseEpoch(epoch);
    LeaseEpochNow { epoch, has_lapsed }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn lease_lapses_once_its_time_has_come() {
    let mut lease = lease();
    assert_eq!(lease.count_lapse(seconds(8.7)), compared(0, false));
    assert_eq!(lease.count_lapse(seconds(8.75)), compared(1, true));
    assert_eq!(lease.count_lapse(20 * SECOND), compared(1, true));
}

#[test]
fn lease_of_a_session_of_unknown_age_begins_with_its_first_confirmed_contact() {
    let mut lease = lease_of(SessionOrigin::Earlier);
    answered(&mut lease, SECOND, SECOND);
    answered(&mut lease, 4 * SECOND, 4 * SECOND);
    assert_eq!(lease.count_lapse(4 * SECOND), compared(1, true));
    lease.note_proof(4 * SECOND);
    assert_eq!(lease.count_lapse(4 * SECOND), compared(1, false));
}

#[test]
fn answer_to_a_later_request_renews_by_the_contact_before_it() {
    let mut lease = lease();
    answered(&mut lease, seconds(5.2), 5 * SECOND);
    // The wait is not over, so the first contact is not confirmed.
    answered(&mut lease, seconds(7.4), seconds(7.4));
    assert_eq!(lease.valid_until, seconds(8.75));
    answered(&mut lease, seconds(7.6), seconds(7.5));
    assert_eq!(lease.valid_until, seconds(13.75));
}

/// The wait of these terms is 2.25 s.
#[test]
fn request_that_is_sent_a_wait_after_an_answer_confirms_it() {
    for (sent, until) in [(3.249, 8.75), (3.25, 9.65)] {
        let mut lease = lease();
        answered(&mut lease, SECOND, seconds(0.9));
        answered(&mut lease, seconds(sent), seconds(sent));
        assert_eq!(lease.valid_until, seconds(until), "{sent}");
    }
}

#[test]
fn renewed_lease_does_not_hide_the_lapse() {
    let mut lease = lease();
    answered(&mut lease, 8 * SECOND, 7 * SECOND);
    answered(&mut lease, 11 * SECOND, 11 * SECOND);
    assert_eq!(lease.count_lapse(11 * SECOND), compared(1, false));
    assert_eq!(lease.valid_until, seconds(15.75));
}

#[test]
fn nothing_is_granted_that_is_lost_before_the_lease_can_be_renewed() {
    let mut lease = lease();
    // The lease ends at 8.75 s. It can be renewed after a wait and an interval of 1 s.
    assert!(lease.may_grant(seconds(5.499)));
    assert!(!lease.may_grant(seconds(5.5)));
    answered(&mut lease, 6 * SECOND, 6 * SECOND);
    assert!(!lease.may_grant(7 * SECOND));
    answered(&mut lease, seconds(8.3), seconds(8.3));
    assert!(lease.may_grant(seconds(8.3)));
}

#[test]
fn nothing_is_granted_that_is_lost_before_the_answer_that_renews_the_lease() {
    // The lease ends at 8.75 s. A wait and an interval take 3.25 s, and the answer as long as the last.
    for (sent, may_grant) in [(4.9, true), (4.6, true), (4.4, false), (4.0, false)] {
        let mut lease = lease();
        answered(&mut lease, 5 * SECOND, seconds(sent));
        assert_eq!(lease.may_grant(5 * SECOND), may_grant, "{sent}");
    }
}

#[test]
fn reconnect_renews_once_the_session_is_proven() {
    let mut lease = lease();
    answered(&mut lease, 6 * SECOND, 5 * SECOND);
    lease.connected_anew();
    assert!(!lease.quorum_confirmed);
    assert_eq!(lease.valid_until, seconds(8.75));
    lease.note_proof(6 * SECOND);
    assert_eq!(lease.valid_until, seconds(13.75));
}

#[test]
fn grant_waits_until_the_first_answer_can_renew_the_lease() {
    // The lease can be renewed a wait and an interval after the answer: 3.25 s.
    for (answer, asked, may_grant) in [(3.0, 8.0, true), (5.6, 5.6, false)] {
        let (mut lease, answer) = (lease(), seconds(answer));
        lease.connected_anew();
        answered(&mut lease, answer, answer);
        lease.note_proof(answer);
        assert_eq!(lease.may_grant(seconds(asked)), may_grant);
    }
}

#[test]
fn terms_cover_an_isolated_leader_for_the_tick_that_is_assumed() {
    for timeout in (1..=60).map(|seconds| SECOND * seconds) {
        let longest = timeout / 2;
        for (config, tick) in [
            (LeaseConfig::with_tick(timeout, longest), longest),
            (LeaseConfig::with_tick(timeout, timeout / 20), timeout / 20),
            (LeaseConfig::without_tick(timeout, true), longest),
            (
                LeaseConfig::without_tick(timeout, false),
                longest.min(DEFAULT_TICK),
            ),
        ] {
            assert!(config.wait > tick / 2);
            assert!(config.margin + config.wait > tick * 3 / 2);
            assert!(config.can_be_kept(), "{config:?}");
        }
    }
}

#[test]
fn lease_that_would_be_renewed_in_a_tenth_of_the_timeout_cannot_be_kept() {
    let minute = 60 * SECOND;
    assert!(!LeaseConfig::with_tick(minute, 34 * SECOND).can_be_kept());
    assert!(LeaseConfig::with_tick(minute, seconds(33.9)).can_be_kept());
}

/// Each timeout of up to a minute, in milliseconds, with ticks from a millisecond to the timeout.
#[test]
fn terms_of_each_timeout_and_tick_leave_the_lease_positive() {
    const PARTS: u32 = 32;
    let timeouts = (1..=60_000).chain([1 << 20, i32::MAX as u64]);
    for timeout in timeouts.map(Duration::from_millis) {
        let ticks = (1..=PARTS).map(|part| timeout * part / PARTS);
        let ticks = ticks.chain([Duration::from_millis(1), 2 * SECOND, DEFAULT_TICK]);
        let set = ticks.map(|tick| LeaseConfig::with_tick(timeout, tick));
        let assumed = [true, false].map(|raised| LeaseConfig::without_tick(timeout, raised));
        let kept = set.filter(LeaseConfig::can_be_kept);
        for config in assumed.into_iter().chain(kept) {
            assert!(
                config.can_be_kept() && config.margin < timeout,
                "{config:?}"
            );
            assert!(config.probe_interval() > Duration::ZERO, "{config:?}");
            // The lease is renewed with two intervals to spare.
            let renewed = config.wait + config.probe_interval() * 2;
            assert!(renewed < timeout - config.margin, "{config:?}");
            // The warning of a blocked runtime comes before a hold is lost.
            let tolerated = config.tolerated_silence();
            assert!(config.probe_interval() <= tolerated / 2, "{config:?}");
            let lease = Lease::new(SessionOrigin::Opened(Duration::ZERO), config);
            assert_eq!(lease.valid_until, timeout - config.margin);
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
    quorum_confirmed: bool,
    /// The end by the connections before.
    carried: Duration,
    valid_until: Duration,
}

impl Account {
    fn renew(&mut self, config: LeaseConfig) {
        let confirms = |answered: Duration| {
            let confirmed_at = answered + config.wait;
            self.contacts.iter().any(|(sent, _)| *sent >= confirmed_at)
        };
        let confirmed = self
            .contacts
            .iter()
            .filter(|(_, answered)| confirms(*answered));
        let ends = confirmed.map(|(sent, _)| *sent + config.timeout - config.margin);
        if self.quorum_confirmed {
            let end = ends.max().unwrap_or_default().max(self.carried);
            self.valid_until = self.valid_until.max(end);
        }
    }

    fn connected(&mut self, config: LeaseConfig) {
        if self.quorum_confirmed {
            let last = self.contacts.iter().map(|(sent, _)| *sent).max();
            let end = last.map(|sent| sent + config.timeout - config.margin);
            self.carried = end.unwrap_or_default().max(self.valid_until);
        }
        self.contacts.clear();
        self.quorum_confirmed = false;
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
            quorum_confirmed: true,
            valid_until: lease.valid_until,
            carried: lease.valid_until,
            ..Account::default()
        };
        let mut epoch = lease.count_lapse(now).epoch;
        for step in steps.clone() {
            match step {
                Step::Passes(seconds) => now += SECOND * seconds,
                Step::Answered(ago) => {
                    let sent = now - SECOND * ago;
                    account.contacts.push((sent, now));
                    answered(&mut lease, now, sent);
                }
                Step::Connected => {
                    account.connected(lease.config);
                    lease.connected_anew();
                }
                Step::Proved => {
                    account.quorum_confirmed = true;
                    lease.note_proof(now);
                }
            }
            account.renew(lease.config);
            let (valid, allowed) = (lease.valid_until, account.valid_until);
            assert_eq!(valid, allowed, "{:?}", steps.collect::<Vec<_>>());
            let counted = lease.count_lapse(now);
            assert!(counted.epoch >= epoch && counted.has_lapsed == (now >= valid));
            let may_grant = lease.may_grant(now);
            assert!(
                !(counted.has_lapsed && may_grant),
                "a lapsed lease grants nothing"
            );
            epoch = counted.epoch;
        }
    }
}

/// True if the lease lapses by a silence of the servers, which begins as a probe is due.
///
/// They answer the probes of the silence at its end, and all others at once.
fn lapses_by_a_silence(config: LeaseConfig, silence: Duration) -> bool {
    let mut lease = Lease::new(SessionOrigin::Opened(Duration::ZERO), config);
    let probe = config.probe_interval();
    let (begin, end) = (40 * probe, 40 * probe + silence);
    let sent: Vec<Duration> = (0..100).map(|number| number * probe).collect();
    let answer_of = |sent: Duration| match (begin..end).contains(&sent) {
        true => end,
        false => sent,
    };
    sent.into_iter().any(|sent| {
        let answered_at = answer_of(sent);
        let lapsed = lease.count_lapse(answered_at).has_lapsed;
        answered(&mut lease, answered_at, sent);
        lapsed
    })
}

#[test]
fn silence_of_the_servers_lapses_a_lease_if_it_is_longer_than_the_tolerated_one() {
    for timeout in [4, 10, 30, 60].map(|timeout| timeout * SECOND) {
        let ticks = [timeout / 20, timeout / 10, timeout / 5, timeout / 4];
        let with = ticks.map(|tick| LeaseConfig::with_tick(timeout, tick));
        let without = [false, true].map(|raised| LeaseConfig::without_tick(timeout, raised));
        for config in with.into_iter().chain(without) {
            let (tolerated, moment) = (config.tolerated_silence(), Duration::from_nanos(1));
            let lapses = [tolerated - moment, tolerated + moment]
                .map(|silence| lapses_by_a_silence(config, silence));
            assert_eq!(lapses, [false, true], "{config:?}");
        }
    }
}

/// The page says in a table which silence is survived, by the session timeout and the tick.
#[test]
fn page_of_the_tick_has_the_silence_that_each_tick_tolerates() {
    let page = include_str!("../../src/docs/tick.md");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(" s |"));
    let mut checked = 0;
    for row in rows.filter(|row| !row.starts_with("| T ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let in_seconds = |cell: &str| {
            let number = cell.strip_suffix(" s").and_then(|it| it.parse().ok());
            number.map(seconds)
        };
        let timeout = in_seconds(cells[0]).expect("a session timeout");
        let with_ticks =
            [0.5, 1.0, 2.0, 3.0].map(|tick| LeaseConfig::with_tick(timeout, seconds(tick)));
        let config = [LeaseConfig::without_tick(timeout, false)];
        for (config, cell) in config.iter().chain(&with_ticks).zip(&cells[1..]) {
            let tolerated = config.can_be_kept().then(|| config.tolerated_silence());
            assert_eq!(tolerated, in_seconds(cell), "{row}: {cell}");
            checked += 1;
        }
    }
    assert_eq!(checked, 25);
}
