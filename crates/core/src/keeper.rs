//! What keeps a ZooKeeper session: probes, and the proof after each reconnect.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::{Interval, MissedTickBehavior};

use crate::ensemble::{ConnectionState, ServerSession};
use crate::error::ServerError;
use crate::live::{Contact, LiveSession};
use crate::proof::prove;

/// How many proofs are tried in a session in which no create was ever answered: its server may break
/// the connection at each.
const MOST_PROOFS: u32 = 4;

/// How many probes are under way at once.
const MOST_PROBES: usize = 4;

/// Keeps one ZooKeeper session. Does not keep its server side open.
pub(crate) struct Keeper {
    live: Arc<LiveSession>,
    server: Weak<dyn ServerSession>,
    ticks: Interval,
    /// The probes under way, oldest first.
    probes: VecDeque<Probe>,
    proof: Option<BoxFuture<'static, Result<(), ServerError>>>,
    /// How many proofs were begun.
    proofs: u32,
    /// The first state is the one that the session was opened with, no reconnect.
    opened: bool,
}

struct Probe {
    sent: Duration,
    answer: BoxFuture<'static, Result<(), ServerError>>,
}

impl Keeper {
    pub(crate) fn new(live: &Arc<LiveSession>, server: &Arc<dyn ServerSession>) -> Keeper {
        let mut ticks = tokio::time::interval(live.probe_interval());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Keeper {
            live: live.clone(),
            server: Arc::downgrade(server),
            ticks,
            probes: VecDeque::new(),
            proof: None,
            proofs: 0,
            opened: false,
        }
    }

    /// Takes note of what has become of the connection.
    pub(crate) fn connection_is(&mut self, state: ConnectionState) {
        match state {
            ConnectionState::Connected => {
                if std::mem::replace(&mut self.opened, true) {
                    self.live.reconnected();
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

    /// Does the next thing there is to do.
    ///
    /// Cancel safe.
    pub(crate) async fn works(&mut self) {
        let Keeper {
            ticks,
            probes,
            proof,
            ..
        } = self;
        let answer = async {
            match probes.front_mut() {
                Some(probe) => (&mut probe.answer).await,
                None => std::future::pending().await,
            }
        };
        let proved = async {
            match proof {
                Some(proof) => proof.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            proved = proved => {
                self.proof = None;
                self.is_proved(proved);
            }
            answer = answer => {
                if let (Some(probe), Ok(())) = (self.probes.pop_front(), answer) {
                    self.live.answered(probe.sent);
                    self.is_in_contact();
                }
            }
            _ = ticks.tick() => self.tick(),
        }
    }

    fn tick(&mut self) {
        let patience = self.live.timeout() / 4;
        let now = self.live.now();
        let is_overdue = |probe: &Probe| probe.sent + patience < now;
        if self.probes.front().is_some_and(is_overdue) {
            self.live.set_contact(Contact::Suspended);
        }
        self.probe();
        if let Some(server) = self.server.upgrade() {
            for witness in self.live.take_witnesses() {
                let watch = witness.watch(self.live.clone(), server.clone());
                self.live.in_background(watch);
            }
        }
    }

    /// Sends a probe, and the proof where one is wanted.
    fn probe(&mut self) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        self.live.look_at_connection(&*server);
        let may_prove = self.live.creates() || self.proofs < MOST_PROOFS;
        if self.proof.is_none() && may_prove && self.live.must_be_proven() {
            self.proofs += 1;
            self.proof = Some(prove(self.live.clone(), server.clone()).boxed());
        }
        if self.probes.len() < MOST_PROBES {
            let sent = self.live.now();
            let answer = async move { server.sync("/").await }.boxed();
            self.probes.push_back(Probe { sent, answer });
        }
    }

    fn is_proved(&mut self, proved: Result<(), ServerError>) {
        match proved {
            Ok(()) => self.is_in_contact(),
            Err(ServerError::SessionOver(end)) => {
                let session = self.live.id();
                tracing::warn!(%session, "the server has put the client into another session");
                self.live.end(end);
            }
            // The next connection is proved anew.
            Err(error) => tracing::debug!(%error, "no proof of the session yet"),
        }
    }

    /// An answer has come; what is held is in doubt as long as the session is not proven.
    fn is_in_contact(&self) {
        let server = self.server.upgrade();
        let is_connected =
            server.is_some_and(|server| server.state() == ConnectionState::Connected);
        if is_connected && !self.live.must_be_proven() {
            self.live.set_contact(Contact::Connected);
        }
    }

    /// Lets go of what is under way. What is left of the server side, if anybody keeps it.
    pub(crate) fn end(self) -> Weak<dyn ServerSession> {
        self.server
    }
}
