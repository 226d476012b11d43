//! The rounds of tries over all addresses, and the look-ups of the names beside them.
//!
//! A look-up counts against no limit of a try, and the last known addresses are tried meanwhile.
//! A name that does not resolve is looked up again in each round, because it may come to exist.

use std::net::SocketAddr;
use std::time::Duration;

use crate::error::DisconnectReason;
use crate::session::host::Host;
use crate::session::machine::{Machine, Phase, Refusal};
use crate::session::output::Output;
use crate::session::timing::Timing;

/// How long the first name that is looked up waits for the others.
///
/// Without it, each session would be opened at the name that is looked up fastest.
const GATHERING: Duration = Duration::from_millis(50);

/// The pause between two rounds while names are looked up and no address is known, and between two
/// look-ups while the session is connected to a host that is not listed any more.
const WAITING: Duration = Duration::from_secs(2);

impl<R, W> Machine<R, W> {
    /// Tries the next address, or begins a round.
    pub(crate) fn try_next(&mut self, now: Duration) {
        // A host that has refused the session is asked again.
        let again = match self.refusal {
            Refusal::Unknown => None,
            Refusal::Suspected | Refusal::Shown { .. } => self.hosts.again(),
        };
        if again.is_none() {
            self.refusal = Refusal::Unknown;
            if !self.hosts.has_untried() {
                self.handshake_limit.round_is_over();
                self.hosts.begin_round();
                self.look_up(now);
            }
        }
        let Some(place) = again.or_else(|| self.hosts.next()) else {
            return self.wait_for_names(now);
        };
        let is_urgent = self.is_urgent(now);
        self.handshake_limit.begin(&self.timing, is_urgent);
        self.phase = Phase::Opening { since: now };
        self.yields(Output::Connect {
            host: place.host,
            address: place.address,
            within: self.handshake_limit.accept,
        });
    }

    /// Waits until an address is known. Names whose look-up fails are looked up again.
    fn wait_for_names(&mut self, now: Duration) {
        let pause = match self.hosts.are_looked_up() {
            true => WAITING,
            false => self.pauses.after_a_round(self.timing.session),
        };
        self.phase = Phase::Down {
            until: now + pause,
            idle: true,
        };
    }

    /// Pauses after a try in vain, or after the break of a connection that was up.
    ///
    /// A session that `has_left` its server continues the round: it comes to the servers that it has
    /// left before only after all others.
    pub(crate) fn pause(&mut self, now: Duration, was_up: bool, has_left: bool) {
        let (session, is_first) = (self.timing.session, was_up && !self.pauses.has_failed);
        let continues = has_left && self.hosts.has_untried();
        self.pauses.has_failed = true;
        let mut pause = Duration::ZERO;
        if was_up {
            if is_first && !continues {
                self.hosts.begin_round();
            }
            self.look_up(now);
            pause = self.pauses.after_a_break(session);
        }
        if !is_first && !self.hosts.has_untried() {
            pause = pause.max(self.pauses.after_a_round(session));
        }
        self.phase = Phase::Down {
            until: now + pause,
            idle: !self.hosts.has_untried(),
        };
    }

    /// Has the names looked up that are not being looked up.
    pub(crate) fn look_up(&mut self, now: Duration) {
        self.look_up_at = now + WAITING;
        for name in self.hosts.names_to_look_up(now) {
            self.yields(Output::LookUp(name));
        }
    }

    /// The answer to [`Output::LookUp`]: the addresses that the name has now, or why it has none.
    ///
    /// New addresses are tried in the present round. Addresses that the name no longer has are not
    /// tried again. After an error the name keeps the addresses that it had.
    pub fn looked_up(
        &mut self,
        now: Duration,
        host: &Host,
        found: Result<Vec<SocketAddr>, DisconnectReason>,
    ) {
        if self.is_ended() {
            return;
        }
        let is_found = found.is_ok();
        self.hosts.looked_up(host, found);
        self.addresses_have_changed(now);
        if !is_found && matches!(self.phase, Phase::Down { .. }) {
            self.yields(Output::State(self.disconnected()));
        }
    }

    /// Adds addresses that a name had before. They are tried while the name is looked up.
    pub fn remember(&mut self, now: Duration, host: &Host, addresses: &[SocketAddr]) {
        self.hosts.learn(host, addresses);
        self.addresses_have_changed(now);
    }

    /// As [`Connection::set_hosts`](crate::Connection::set_hosts).
    pub fn set_hosts(&mut self, now: Duration, hosts: &[Host]) {
        if self.is_ended() {
            return;
        }
        self.hosts.set(hosts);
        self.look_up(now);
        self.addresses_have_changed(now);
    }

    fn addresses_have_changed(&mut self, now: Duration) {
        self.timing = Timing::of(self.timing.session, self.hosts.number());
        let leaves = match self.phase {
            // Nobody answers at an address that the name has lost.
            Phase::Opening { .. } => self.hosts.again().is_none(),
            Phase::Greeting { .. } | Phase::Authenticating { .. } | Phase::Restoring { .. } => {
                !self.hosts.lists_present()
            }
            Phase::Up => !self.hosts.lists_present() && self.hosts.has_other(),
            Phase::Down { .. } | Phase::Ended(_) => false,
        };
        if leaves {
            return self.give_up(now, DisconnectReason::Left);
        }
        match self.phase {
            Phase::Down { until, idle: true } if self.hosts.has_untried() => {
                let wait = match self.hosts.are_looked_up() {
                    true => GATHERING,
                    false => Duration::ZERO,
                };
                let until = until.min(now + wait);
                self.phase = Phase::Down { until, idle: true };
            }
            Phase::Down { .. } if !self.hosts.has_address() && !self.hosts.are_looked_up() => {
                self.wait_for_names(now);
            }
            _ => {}
        }
    }
}
