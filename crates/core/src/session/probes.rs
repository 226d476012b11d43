//! The probes of a ZooKeeper session, and the proof after each reconnect.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::events::TARGET;
use crate::events::keys::{PROBES, RECONNECTS};
use crate::events::meter;
use crate::hold::open_session::OpenSession;
use crate::live::live_session::Status;
use crate::server::ensemble::{ConnectionState, Exchange, Pending};
use crate::server::error::ServerError;
use crate::sync::{or_pending, ready_now};

/// The largest number of probes without an answer.
const MAX_PROBES: usize = 4;

/// Sends the probes of a session, and the proof after each reconnect.
pub(crate) struct Prober {
    open: Arc<OpenSession>,
    ticks: Interval,
    /// When the next tick is due, by the ensemble's clock.
    due: Duration,
    /// The probes without an answer, oldest first.
    probes: VecDeque<Probe>,
    proof: Option<Pending<Exchange>>,
    /// The connection of the last state, or of the opening before there was one. A state with this
    /// connection is no reconnect.
    seen: Option<u64>,
}

struct Probe {
    asked_at: Duration,
    answer: Pending<Exchange>,
}

impl Prober {
    /// Sends the first probe.
    pub(crate) fn new(open: &Arc<OpenSession>) -> Prober {
        let live = &open.live;
        // Sessions that were opened at the same moment must not probe at the same moments.
        let second = Instant::now() + live.probe_phase;
        let mut ticks = interval_at(second, live.probe_interval);
        // After a runtime was blocked, the ticks of all its sessions are late. Each session then
        // returns to its own moments. Otherwise they would tick together from then on.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut prober = Prober {
            open: open.clone(),
            due: live.now() + live.probe_phase,
            ticks,
            probes: VecDeque::new(),
            proof: None,
            seen: live.server().ok().and_then(|server| server.connection()),
        };
        prober.probe();
        prober
    }

    /// Handles a new state of the connection.
    pub(crate) fn handle_state(&mut self, state: ConnectionState) {
        match state {
            ConnectionState::Connected { connection, .. } => {
                if self.seen.replace(connection) != Some(connection) {
                    // The time between the two connections may have passed unseen.
                    self.open.live.set_status(Status::Suspended);
                    meter::count(RECONNECTS, None, None);
                    // The answers to the probes of the earlier connection are lost. They must not
                    // keep the next one waiting.
                    self.probes.clear();
                    // Neither must its proof. A proof that has no outcome yet goes over this one.
                    if let Some(proved) = self.proof.as_mut().and_then(ready_now) {
                        self.handle_proof(proved);
                    }
                    self.probe();
                }
            }
            ConnectionState::Disconnected { .. } => {
                self.seen = None;
                self.open.live.set_status(Status::Suspended);
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
            proved = or_pending(self.proof.as_mut()) => self.handle_proof(proved),
            answer = or_pending(answer) => {
                self.probes.pop_front();
                if let Ok(exchange) = answer {
                    self.open.live.note_answer(exchange);
                    meter::record(PROBES, None, exchange.took());
                    self.after_answer();
                }
            }
            _ = self.ticks.tick() => self.on_tick(),
        }
    }

    fn handle_proof(&mut self, proved: Result<Exchange, ServerError>) {
        self.proof = None;
        match proved {
            Ok(exchange) => {
                self.open.live.note_commit(exchange);
                self.after_answer();
            }
            // The next probe starts another proof.
            Err(error) => {
                let session = self.open.live.id;
                tracing::debug!(target: TARGET, %session, %error, "the reconnect is not proven yet");
            }
        }
    }

    fn on_tick(&mut self) {
        let patience = self.open.live.timeout / 4;
        let now = self.open.live.now();
        self.warn_if_late(now);
        let is_overdue = |probe: &Probe| probe.asked_at + patience < now;
        if self.probes.front().is_some_and(is_overdue) {
            self.open.live.set_status(Status::Suspended);
        }
        self.probe();
        if let Ok(server) = self.open.live.server() {
            self.open.watch_each(&server);
        }
    }

    /// Warns if nothing has run this task for half of the silence that ends no hold.
    ///
    /// The next tick is late by the time for which the task did not run, less at most one probe
    /// interval. A probe interval is at most half of the tolerated silence. So each block that may
    /// cost a hold brings the warning.
    fn warn_if_late(&mut self, now: Duration) {
        let (session, late) = (self.open.live.id, now.saturating_sub(self.due));
        self.due = now + self.open.live.probe_interval;
        let tolerated_silence = self.open.live.tolerated_silence;
        if late > tolerated_silence / 2 {
            tracing::warn!(
                target: TARGET, %session, ?late, ?tolerated_silence, "runtime blocked"
            );
        }
    }

    /// Sends a probe, and the proof if one is needed.
    fn probe(&mut self) {
        let live = &self.open.live;
        let Ok(server) = live.server() else {
            return;
        };
        live.adopt_connection(&server);
        let needs_proof = self.proof.is_none() && !live.is_proven(&server);
        if self.probes.len() < MAX_PROBES {
            let asked_at = live.now();
            // It is sent even if earlier probes have no answer yet.
            let answer = server.sync("/");
            self.probes.push_back(Probe { asked_at, answer });
        }
        if needs_proof {
            self.proof = Some(server.commit_noop());
        }
    }

    /// Call it after an answer. Holds stay suspended until the session is proven.
    fn after_answer(&self) {
        let live = &self.open.live;
        let Ok(server) = live.server() else {
            return;
        };
        if live.is_proven(&server) {
            live.set_status(Status::Connected);
        }
        live.leave_late_server(&server);
    }
}

impl Drop for Prober {
    /// Warns of a block after which the session ends before the next tick.
    fn drop(&mut self) {
        self.warn_if_late(self.open.live.now());
    }
}

#[cfg(test)]
#[path = "../../tests/unit/probes.rs"]
mod tests;
