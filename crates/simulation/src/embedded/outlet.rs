//! What is on its way to a client: replies and events, as bytes, up to a limit.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use zookeeper_recipes_protocol::{Reply, ReplyBody};

use super::figures::{ConnectionFigures, Figures, operation_name};
use crate::bytes::replies::{self, Awaited};
use crate::wire::answer::{Answer, Failure};
use crate::wire::message::Downward;
use crate::wire::network::Peer;

/// What is on its way to a client.
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
    awaited: VecDeque<(Awaited, Instant)>,
    session: i64,
    timeout: Option<Duration>,
    sends_read_only: bool,
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
                awaited: VecDeque::new(),
                session: 0,
                timeout: None,
                sends_read_only: true,
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

    /// What is to be written, and how far the connection has come to its end.
    pub(super) fn take(&self, into: &mut Vec<u8>) -> Stage {
        let mut state = self.state();
        if into.is_empty() {
            std::mem::swap(into, &mut state.bytes);
        } else {
            into.append(&mut state.bytes);
        }
        state.stage
    }

    pub(super) fn stage(&self) -> Stage {
        self.state().stage
    }

    /// How many bytes are to be written that have not been taken, and how many requests answered.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let state = self.state();
        (state.bytes.len(), state.awaited.len())
    }

    /// Whether the client sends the field `readOnly`, and so wants it back.
    pub(super) fn greet(&self, sends_read_only: bool) {
        self.state().sends_read_only = sends_read_only;
    }

    /// A request has come that will be answered.
    pub(super) fn await_reply(&self, awaited: Awaited) {
        self.state().awaited.push_back((awaited, Instant::now()));
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
            state.awaited.len(),
            state.figures.clone(),
        )
    }

    fn put(&self, state: &mut State, encode: impl FnOnce(&mut Vec<u8>)) {
        if state.stage != Stage::Open {
            return;
        }
        encode(&mut state.bytes);
        state.figures.sent += 1;
        if state.bytes.len() > self.limit {
            state.stage = Stage::Full;
            state.bytes = Vec::new();
        }
    }

    fn reply(&self, state: &mut State, id: u64, zxid: i64, result: Result<Answer, Failure>) {
        let place = state.awaited.iter().position(|(it, _)| it.id == id);
        let Some((awaited, since)) = place.and_then(|at| state.awaited.remove(at)) else {
            return;
        };
        let took = since.elapsed();
        let figures = &mut state.figures;
        figures.last_operation = operation_name(awaited.opcode);
        figures.last_xid = awaited.xid;
        figures.last_zxid = zxid;
        figures.last_answer = Instant::now();
        figures.latency.add(took);
        let mut totals = self.totals();
        totals.sent += 1;
        totals.latency.add(took);
        if result == Err(Failure::AuthenticationFailed) {
            totals.authentication_failures += 1;
        }
        drop(totals);
        let before = state.bytes.len();
        self.put(state, |bytes| {
            replies::encode_frame(awaited, zxid, result, bytes);
        });
        let size = state.bytes.len().saturating_sub(before);
        self.totals().responses.add(size);
    }

    fn event(&self, state: &mut State, reply: &Reply) {
        if let ReplyBody::Notification(event) = &reply.body {
            let mut totals = self.totals();
            totals.sent += 1;
            totals.count_event(event.kind);
        }
        self.put(state, |bytes| reply.encode_frame(bytes));
    }
}

impl Peer for Outlet {
    fn hear(&self, message: Downward) {
        let mut state = self.state();
        self.hear_into(&mut state, message);
        drop(state);
        self.woken.notify_one();
    }

    fn hang_up(&self) {
        self.state().stage = Stage::Broken;
        self.woken.notify_one();
    }
}

impl Outlet {
    fn hear_into(&self, state: &mut State, message: Downward) {
        match message {
            Downward::Connected {
                session,
                timeout,
                read_only,
            } => {
                state.session = session;
                state.timeout = Some(timeout);
                let read_only = state.sends_read_only.then_some(read_only);
                let response = replies::connected(session, timeout, read_only);
                self.put(state, |bytes| response.encode_frame(bytes));
            }
            Downward::Expired => {
                let response = replies::expired(state.sends_read_only.then_some(false));
                self.put(state, |bytes| response.encode_frame(bytes));
            }
            Downward::Reply {
                id, zxid, result, ..
            } => self.reply(state, id, zxid, result),
            Downward::Event { path, event } => {
                if let Some(reply) = replies::notification(path, event) {
                    self.event(state, &reply);
                }
            }
            Downward::Close => {
                if state.stage == Stage::Open {
                    state.stage = Stage::Closing;
                }
            }
            Downward::Torn { message, share } => {
                let before = state.bytes.len();
                self.hear_into(state, *message);
                replies::tear(&mut state.bytes, before, share);
            }
        }
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
