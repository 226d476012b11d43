//! The lease: the time until which the server cannot have expired the session.
//!
//! [`docs::lease`](crate::docs::lease) says why the rule is safe and what its margin consists of.

use std::collections::VecDeque;
use std::time::Duration;

use crate::server::ensemble::Exchange;

/// The tick that is assumed if the user sets none: ZooKeeper's without a `tickTime` in its
/// configuration.
const DEFAULT_TICK: Duration = Duration::from_secs(3);

/// The times that a lease counts with: the session timeout, the wait and the margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseConfig {
    timeout: Duration,
    /// The wait. A request sent this long after the answer to a contact confirms the contact.
    wait: Duration,
    /// The lease ends this long before the server could expire the session.
    margin: Duration,
}

impl LeaseConfig {
    /// The configuration if the user sets the servers' tick.
    pub(crate) fn with_tick(timeout: Duration, tick: Duration) -> LeaseConfig {
        LeaseConfig {
            timeout,
            wait: tick + timeout / 40,
            margin: tick / 2 + timeout / 40,
        }
    }

    /// The configuration if the user does not set the servers' tick.
    ///
    /// If the server has raised the session timeout, half of the timeout is assumed as its tick. If
    /// it has not, the shorter of three seconds and half of the timeout is assumed.
    pub(crate) fn without_tick(timeout: Duration, raised: bool) -> LeaseConfig {
        let wait = timeout / 4 + timeout / 40;
        let longest = timeout / 2;
        let tick = if raised {
            longest
        } else {
            longest.min(DEFAULT_TICK)
        };
        let isolated = (tick * 3 / 2).saturating_sub(wait) + timeout / 20;
        LeaseConfig {
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

    /// The longest silence of the servers that lapses no lease.
    ///
    /// Each probe before and after it must be answered at once.
    ///
    /// The lease must not run out before the silence ends, nor before the answers at its end are
    /// confirmed. The silence is counted from when its first probe was due.
    pub(crate) fn tolerated_silence(&self) -> Duration {
        let probe = self.probe_interval();
        let probes = |count| probe.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        let probe_nanos = probe.as_nanos().max(1);
        // A contact is confirmed by the first probe that is sent a wait later, so after a whole
        // number of intervals. Before the next confirmation it is one interval older.
        let oldest = probes(self.wait.as_nanos().div_ceil(probe_nanos) + 1);
        let lease = self.timeout.saturating_sub(self.margin);
        let until_end = lease.saturating_sub(oldest);
        // The answers at the end are confirmed by the first probe that is sent a wait later. Until
        // then the lease counts from the probe before the silence.
        let left = lease.saturating_sub(probe).as_nanos();
        let last_probe = probes(left.saturating_sub(1) / probe_nanos);
        until_end.min(last_probe.saturating_sub(self.wait))
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
pub(crate) enum SessionOrigin {
    /// The session was opened, by a request that was sent at this time or later.
    Opened(Duration),
    /// The session was opened at an unknown time.
    Earlier,
}

/// A request that was answered through the leader.
#[derive(Clone, Copy, Debug)]
struct Heartbeat {
    /// When the request was sent.
    sent: Duration,
    /// When the answer came.
    answered: Duration,
}

/// The number of times that a lease has lapsed.
///
/// A hold is valid only while this is the number at its grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeaseEpoch(pub(crate) u64);

/// What a comparison of the lease with the clock finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseEpochNow {
    /// The number of lapses until now.
    pub(crate) epoch: LeaseEpoch,
    pub(crate) has_lapsed: bool,
}

/// The lease of one session.
///
/// A hold that was granted before a lapse stays lost, even if the lease is renewed later. The
/// count of lapses distinguishes such a hold from a newer one.
#[derive(Debug)]
pub(crate) struct Lease {
    config: LeaseConfig,
    pub(super) valid_until: Duration,
    has_lapsed: bool,
    epoch: LeaseEpoch,
    /// When the lease lapsed last. Zero if it never has.
    pub(super) lapsed_at: Duration,
    /// Contacts over this connection that are not confirmed yet, oldest first.
    unconfirmed: VecDeque<Heartbeat>,
    /// True if the connection is known to serve this session.
    pub(super) quorum_confirmed: bool,
    /// The end of the lease if the connection serves this session.
    if_proven: Duration,
    /// The end of the lease by the contacts over earlier connections, if this connection serves the
    /// session.
    carried_over: Duration,
}

impl Lease {
    /// The lease of a session that began in this way.
    ///
    /// Only the lease of an opened session begins to run at once, over a proven connection.
    pub(crate) fn new(origin: SessionOrigin, config: LeaseConfig) -> Lease {
        let valid_until = match origin {
            SessionOrigin::Opened(asked_at) => asked_at + config.timeout - config.margin,
            SessionOrigin::Earlier => Duration::ZERO,
        };
        Lease {
            config,
            valid_until,
            has_lapsed: false,
            epoch: LeaseEpoch::default(),
            lapsed_at: Duration::ZERO,
            unconfirmed: VecDeque::new(),
            quorum_confirmed: matches!(origin, SessionOrigin::Opened(_)),
            if_proven: valid_until,
            carried_over: valid_until,
        }
    }

    /// Compares the lease with the clock, and counts a lapse.
    pub(crate) fn count_lapse(&mut self, now: Duration) -> LeaseEpochNow {
        if now >= self.valid_until && !self.has_lapsed {
            self.has_lapsed = true;
            self.epoch.0 += 1;
            self.lapsed_at = self.valid_until;
        }
        self.last_count()
    }

    /// What the last comparison has found.
    pub(crate) fn last_count(&self) -> LeaseEpochNow {
        LeaseEpochNow {
            epoch: self.epoch,
            has_lapsed: self.has_lapsed,
        }
    }

    /// Notes that a request was answered through the leader over this connection.
    ///
    /// The request confirms each contact that was answered at least the wait before the request was
    /// sent. Confirmed contacts renew the lease once the connection is proven.
    pub(crate) fn note_answer(&mut self, now: Duration, exchange: Exchange) {
        let Exchange { sent, answered, .. } = exchange;
        while let Some(contact) = self.unconfirmed.front() {
            if contact.answered + self.config.wait > sent {
                break;
            }
            self.if_proven = self.if_proven.max(self.until(contact.sent));
            self.unconfirmed.pop_front();
        }
        // Only the first of several contacts close together is kept, so that the list stays short.
        let grain = self.config.timeout / 100;
        let is_apart = |last: &Heartbeat| sent >= last.sent + grain;
        if self.unconfirmed.back().is_none_or(is_apart) {
            self.unconfirmed.push_back(Heartbeat { sent, answered });
        }
        self.renew(now);
    }

    /// True if a hold that is granted now lasts until the lease can be renewed.
    ///
    /// The answer that renews it may take as long as that to the oldest contact took.
    pub(crate) fn may_grant(&self, now: Duration) -> bool {
        let oldest = self.unconfirmed.front();
        let took = |it: &Heartbeat| it.answered.saturating_sub(it.sent);
        let answered = oldest.map_or(now, |it| it.answered + took(it));
        let renewed = answered + self.config.wait + self.config.probe_interval();
        self.quorum_confirmed && self.valid_until > renewed.max(now)
    }

    /// Begins a new connection, which is not proven: it may serve another session.
    ///
    /// A reconnect to this session touches the session at the leader. So the reconnect confirms
    /// all contacts over the connection before, if that connection was proven.
    pub(crate) fn connected_anew(&mut self) {
        if self.quorum_confirmed {
            let last = self.unconfirmed.back().map(|last| self.until(last.sent));
            self.carried_over = last.unwrap_or_default().max(self.valid_until);
        }
        self.if_proven = self.carried_over;
        self.unconfirmed.clear();
        self.quorum_confirmed = false;
    }

    /// Notes that the connection serves this session, and renews the lease.
    pub(crate) fn note_proof(&mut self, now: Duration) {
        self.quorum_confirmed = true;
        self.renew(now);
    }

    /// The end of the lease by a contact that was sent at this time.
    fn until(&self, contact: Duration) -> Duration {
        contact + self.config.timeout - self.config.margin
    }

    fn renew(&mut self, now: Duration) {
        // The renewal must not hide a lapse before it.
        self.count_lapse(now);
        if self.quorum_confirmed {
            self.valid_until = self.valid_until.max(self.if_proven);
            self.has_lapsed = now >= self.valid_until;
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/lease.rs"]
mod tests;
