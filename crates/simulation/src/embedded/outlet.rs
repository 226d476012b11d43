//! The messages on their way to a client, as bytes, up to a limit.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::figures::Figures;
use crate::wire::message::{Downward, Note};
use crate::wire::network::Peer;

/// The messages that are on their way to a client.
///
/// The simulation puts in what its servers send. The task of the connection takes it out, as bytes.
pub(super) struct Outlet {
    pub(super) address: SocketAddr,
    limit: usize,
    figures: Arc<Mutex<Figures>>,
    woken: Notify,
    state: Mutex<State>,
}

/// How far a connection has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Open,
    /// It is closed once all has been written.
    Closing,
    /// It is broken: nothing more is written.
    Broken,
    /// More waited to be written than may.
    Full,
}

struct State {
    bytes: Vec<u8>,
    stage: Stage,
    /// How many of the client's frames have no reply yet.
    unanswered: usize,
    session: i64,
    timeout: Option<Duration>,
    received: u64,
    sent: u64,
}

/// What the four-letter words say of a connection.
pub(super) struct Account {
    /// 0 for none.
    pub(super) session: i64,
    pub(super) timeout: Duration,
    /// The requests to be answered.
    pub(super) unanswered: usize,
    pub(super) received: u64,
    pub(super) sent: u64,
}

impl Outlet {
    pub(super) fn new(address: SocketAddr, limit: usize, figures: Arc<Mutex<Figures>>) -> Outlet {
        Outlet {
            address,
            limit,
            figures,
            woken: Notify::new(),
            state: Mutex::new(State {
                bytes: Vec::new(),
                stage: Stage::Open,
                unanswered: 0,
                session: 0,
                timeout: None,
                received: 0,
                sent: 0,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn totals(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when something was put in, or the connection is to end.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Takes the bytes to write into an empty buffer.
    ///
    /// It returns how far the connection has come to its end.
    pub(super) fn take(&self, into: &mut Vec<u8>) -> Stage {
        let mut state = self.state();
        std::mem::swap(into, &mut state.bytes);
        state.stage
    }

    pub(super) fn stage(&self) -> Stage {
        self.state().stage
    }

    /// The number of bytes that wait to be written, and of unanswered requests.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let state = self.state();
        (state.bytes.len(), state.unanswered)
    }

    pub(super) fn count_received(&self) {
        let mut state = self.state();
        state.received += 1;
        state.unanswered += 1;
        self.totals().received += 1;
    }

    /// The timeout of the session, once there is one.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.state().timeout
    }

    pub(super) fn account(&self) -> Account {
        let state = self.state();
        Account {
            session: state.session,
            timeout: state.timeout.unwrap_or_default(),
            unanswered: state.unanswered,
            received: state.received,
            sent: state.sent,
        }
    }

    /// Adds the bytes of a frame.
    fn put(&self, state: &mut State, bytes: &[u8], note: &Note) {
        if let Note::Connected { session, timeout } = note {
            state.session = *session;
            state.timeout = Some(*timeout);
        }
        if state.stage != Stage::Open {
            return;
        }
        state.bytes.extend_from_slice(bytes);
        state.sent += 1;
        match note {
            Note::Event(kind, _) => {
                let mut totals = self.totals();
                totals.sent += 1;
                totals.count_event(*kind);
            }
            Note::Reply { took, .. } => {
                state.unanswered -= 1;
                let mut totals = self.totals();
                totals.sent += 1;
                totals.latency.add(*took);
            }
            Note::Connected { .. } | Note::Expired => state.unanswered -= 1,
            Note::Cut(..) => {}
        }
        if state.bytes.len() > self.limit {
            state.stage = Stage::Full;
            state.bytes = Vec::new();
        }
    }

    /// The connection ends once all has been written.
    pub(super) fn close(&self) {
        let mut state = self.state();
        if state.stage == Stage::Open {
            state.stage = Stage::Closing;
        }
    }
}

impl Peer for Outlet {
    fn hear(&self, message: Downward) {
        match message {
            Downward::Bytes(bytes, note) => self.put(&mut self.state(), &bytes, &note),
            Downward::Close => self.close(),
        }
        self.woken.notify_one();
    }

    fn hang_up(&self) {
        self.state().stage = Stage::Broken;
        self.woken.notify_one();
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Outlet")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
