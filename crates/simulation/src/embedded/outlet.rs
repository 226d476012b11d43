//! The messages on their way to a client, as bytes, up to a limit.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::figures::{ConnectionFigures, Figures, operation_name};
use crate::bytes::replies::{Awaited, Encoded, Replies};
use crate::wire::message::Downward;
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
    replies: Replies,
    session: i64,
    timeout: Option<Duration>,
    figures: ConnectionFigures,
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
                replies: Replies::default(),
                session: 0,
                timeout: None,
                figures: ConnectionFigures::new(),
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

    /// Takes the bytes to write into an empty buffer. Returns how far the connection has come to its end.
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
        (state.bytes.len(), state.replies.awaited.len())
    }

    /// Notes whether the client sends the field `readOnly`, and so wants it back.
    pub(super) fn greet(&self, sends_read_only: bool) {
        self.state().replies.omits_read_only = !sends_read_only;
    }

    /// A request has come that will be answered.
    pub(super) fn await_reply(&self, awaited: Awaited) {
        self.state().replies.awaited.push_back(awaited);
    }

    pub(super) fn count_received(&self) {
        self.state().figures.received += 1;
        self.totals().received += 1;
    }

    /// The timeout of the session, once there is one.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.state().timeout
    }

    /// The session, 0 for none, its timeout, the requests to be answered, and the figures.
    pub(super) fn account(&self) -> (i64, Duration, usize, ConnectionFigures) {
        let state = self.state();
        let timeout = state.timeout.unwrap_or_default();
        (
            state.session,
            timeout,
            state.replies.awaited.len(),
            state.figures.clone(),
        )
    }

    /// Adds the bytes of a message.
    fn put(&self, state: &mut State, message: Downward) {
        match message {
            Downward::Close if state.stage == Stage::Open => state.stage = Stage::Closing,
            Downward::Connected {
                session, timeout, ..
            } => {
                state.session = session;
                state.timeout = Some(timeout);
            }
            _ => {}
        }
        if state.stage != Stage::Open {
            return;
        }
        let before = state.bytes.len();
        let encoded = state.replies.encode(message, &mut state.bytes);
        state.figures.sent += 1;
        if let Some(encoded) = encoded {
            let size = state.bytes.len() - before;
            self.count_sent(&mut state.figures, &encoded, size);
        }
        if state.bytes.len() > self.limit {
            state.stage = Stage::Full;
            state.bytes = Vec::new();
        }
    }

    fn count_sent(&self, figures: &mut ConnectionFigures, encoded: &Encoded, size: usize) {
        let mut totals = self.totals();
        totals.sent += 1;
        match *encoded {
            Encoded::Event(kind) => totals.count_event(kind),
            Encoded::Reply {
                opcode,
                xid,
                zxid,
                since,
                authentication_failed,
            } => {
                let took = since.elapsed();
                figures.last_operation = operation_name(opcode);
                figures.last_xid = xid;
                figures.last_zxid = zxid;
                figures.last_answer = Instant::now();
                figures.latency.add(took);
                totals.latency.add(took);
                totals.responses.add(size);
                totals.authentication_failures += u64::from(authentication_failed);
            }
        }
    }
}

impl Peer for Outlet {
    fn hear(&self, message: Downward) {
        self.put(&mut self.state(), message);
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
