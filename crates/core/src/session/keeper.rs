//! Keeps a ZooKeeper session: sends the probes, and the proof after each reconnect.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::{Interval, MissedTickBehavior};

use crate::events::session as events;
use crate::hold::open_session::OpenSession;
use crate::live::live_session::{Contact, LiveSession};
use crate::server::ensemble::{ConnectionState, Exchange, ServerSession};
use crate::server::error::ServerError;
use crate::sync::{begun, or_never, ready_now};

/// The largest number of probes without an answer.
const MOST_PROBES: usize = 4;

/// Keeps one ZooKeeper session. The `Keeper` does not keep the `ServerSession` open.
pub(crate) struct Keeper {
    open: Arc<OpenSession>,
    live: Arc<LiveSession>,
    server: Weak<dyn ServerSession>,
    ticks: Interval,
    /// The first tick comes at once, and the second this long after it.
    phase: Option<Duration>,
    /// When the next tick is due, by the ensemble's clock.
    due: Duration,
    /// The probes without an answer, oldest first.
    probes: VecDeque<Probe>,
    proof: Option<BoxFuture<'static, Result<Exchange, ServerError>>>,
    /// True after the first state. The first state is that of the opening, not of a reconnect.
    opened: bool,
}

struct Probe {
    asked_at: Duration,
    answer: BoxFuture<'static, Result<Exchange, ServerError>>,
}

impl Keeper {
    pub(crate) fn new(open: &Arc<OpenSession>, server: &Arc<dyn ServerSession>) -> Keeper {
        let live = open.live.clone();
        let mut ticks = tokio::time::interval(live.probe_interval);
        // After a runtime was blocked, the ticks of all its sessions are late. Each session then
        // returns to its own moments. Otherwise they would tick together from then on.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Keeper {
            open: open.clone(),
            phase: Some(live.probe_phase),
            due: live.now(),
            live,
            server: Arc::downgrade(server),
            ticks,
            probes: VecDeque::new(),
            proof: None,
            opened: false,
        }
    }

    /// Handles a new state of the connection.
    pub(crate) fn handle_state(&mut self, state: ConnectionState) {
        match state {
            ConnectionState::Connected => {
                if std::mem::replace(&mut self.opened, true) {
                    self.live.reconnected();
                    events::reconnected();
                    // The answers to the probes of the earlier connection are lost. They must not
                    // keep the next one waiting.
                    self.probes.clear();
                    // Neither must its proof. A proof that has no outcome yet goes over this one.
                    if let Some(proved) = self.proof.as_mut().and_then(ready_now) {
                        self.proved(proved);
                    }
                    self.probe();
                }
            }
            ConnectionState::Disconnected => {
                self.opened = true;
                self.live.set_contact(Contact::Suspended);
            }
            ConnectionState::Ended(_) => {}
        }
    }

    /// Handles the next event: a proof, an answer or a tick.
    ///
    /// Cancel safe.
    pub(crate) async fn handle_next(&mut self) {
        let answer = self.probes.front_mut().map(|probe| &mut probe.answer);
        tokio::select! {
            biased;
            proved = or_never(self.proof.as_mut()) => self.proved(proved),
            answer = or_never(answer) => {
                self.probes.pop_front();
                if let Ok(exchange) = answer {
                    self.live.answered(exchange);
                    events::answered(exchange.answered.saturating_sub(exchange.sent));
                    self.update_contact();
                }
            }
            _ = self.ticks.tick() => self.on_probe(),
        }
    }

    fn proved(&mut self, proved: Result<Exchange, ServerError>) {
        self.proof = None;
        match proved {
            Ok(exchange) => {
                self.live.committed(exchange);
                self.update_contact();
            }
            // The next probe starts another proof.
            Err(error) => events::not_proven(self.live.id, &error),
        }
    }

    fn on_probe(&mut self) {
        let patience = self.live.timeout / 4;
        let now = self.live.now();
        self.warn_if_late(now);
        // Sessions that were opened at the same moment must not probe at the same moments.
        if let Some(phase) = self.phase.take() {
            self.ticks.reset_after(phase);
        }
        let is_overdue = |probe: &Probe| probe.asked_at + patience < now;
        if self.probes.front().is_some_and(is_overdue) {
            self.live.set_contact(Contact::Suspended);
        }
        self.probe();
        if let Some(server) = self.server.upgrade() {
            self.open.granted.watch_each(&self.live, &server);
            self.open.inherited.delete_overdue(&self.live);
        }
    }

    /// Warns if nothing has run this task for half of the silence that ends no hold.
    ///
    /// The next tick is late by the time for which the task did not run, less at most one probe
    /// interval. A probe interval is at most half of the tolerated silence. So each block that may
    /// cost a hold brings the warning.
    fn warn_if_late(&mut self, now: Duration) {
        let late = now.saturating_sub(self.due);
        self.due = now + self.live.probe_interval;
        let tolerates = self.live.tolerates;
        if late > tolerates / 2 {
            events::blocked(self.live.id, late, tolerates);
        }
    }

    /// Sends a probe, and the proof if one is needed.
    fn probe(&mut self) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        self.live.adopt_connection(&*server);
        if self.proof.is_none() && !self.live.is_proven(&*server) {
            let server = server.clone();
            self.proof = Some(async move { server.prove().await }.boxed());
        }
        if self.probes.len() < MOST_PROBES {
            let asked_at = self.live.now();
            // It is sent even if earlier probes have no answer yet.
            let answer = begun(async move { server.sync("/").await });
            self.probes.push_back(Probe { asked_at, answer });
        }
    }

    /// Notes that an answer has come. Holds stay suspended until the session is proven.
    fn update_contact(&self) {
        let server = self.server.upgrade();
        if server.is_some_and(|server| self.live.is_proven(&*server)) {
            self.live.set_contact(Contact::Connected);
        }
    }
}

impl Drop for Keeper {
    /// Warns of a block after which the session ends before the next tick.
    fn drop(&mut self) {
        self.warn_if_late(self.live.now());
    }
}

#[cfg(test)]
#[path = "../../tests/unit/keeper.rs"]
mod tests;
