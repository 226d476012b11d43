//! The events of a session, and of its requests for single znodes.

use std::time::Duration;

use crate::error::Error;
use crate::events::TARGET;
use crate::events::meter::{self, EXPIRIES, OPENED, PROBES, RECONNECTS};
use crate::server::ensemble::SessionId;
use crate::server::error::{Refusal, ServerError, SessionEnd};

pub(crate) fn opened(session: SessionId, timeout: Duration) {
    tracing::info!(target: TARGET, %session, ?timeout, "session opened");
    meter::count(OPENED, None, None);
}

pub(crate) fn suspended(session: SessionId, is_suspended: bool) {
    match is_suspended {
        true => tracing::info!(target: TARGET, %session, "session suspended"),
        false => tracing::info!(target: TARGET, %session, "session resumed"),
    }
}

pub(crate) fn over(session: SessionId, reason: SessionEnd) {
    match reason {
        // An operator has to know.
        SessionEnd::Refused | SessionEnd::SaslRequired => {
            tracing::warn!(target: TARGET, %session, %reason, "session refused");
        }
        _ => tracing::info!(target: TARGET, %session, %reason, "session over"),
    }
    if reason == SessionEnd::Expired {
        meter::count(EXPIRIES, None, None);
    }
}

pub(crate) fn not_opened_yet(error: &Error) {
    tracing::warn!(target: TARGET, %error, "no new ZooKeeper session could be opened yet");
}

pub(crate) fn not_opened(error: &Error) {
    tracing::warn!(target: TARGET, %error, "no ZooKeeper session can be opened");
}

pub(crate) fn close_not_confirmed(session: SessionId) {
    tracing::warn!(target: TARGET, %session, "the server did not confirm the close in time");
}

pub(crate) fn not_proven(session: SessionId, error: &ServerError) {
    tracing::debug!(target: TARGET, %session, %error, "the reconnect is not proven yet");
}

/// The session's task was not run: its tick is late by this time.
pub(crate) fn blocked(session: SessionId, late: Duration, tolerated_silence: Duration) {
    tracing::warn!(target: TARGET, %session, ?late, ?tolerated_silence, "runtime blocked");
}

pub(crate) fn reconnected() {
    meter::count(RECONNECTS, None, None);
}

pub(crate) fn answered(round_trip: Duration) {
    meter::record(PROBES, None, round_trip);
}

/// A session has ended on this side and stays open, and these znodes may stay with it.
pub(crate) fn left(session: SessionId, znodes: &[String]) {
    tracing::warn!(target: TARGET, %session, ?znodes, "znodes left");
}

/// The loss watch of a hold is not set, and is requested again.
pub(crate) fn loss_watch_refused(path: &str, refusal: &Refusal) {
    tracing::warn!(target: TARGET, path, %refusal, "the server refuses a loss watch");
}

pub(crate) fn deletion_refused(path: &str, refusal: &Refusal) {
    tracing::warn!(
        target: TARGET, path, %refusal, "the server refuses a deletion, which is repeated"
    );
}

pub(crate) fn not_deleted(error: &ServerError) {
    tracing::debug!(target: TARGET, %error, "a znode was not deleted when its session was closed");
}

pub(crate) fn create_unknown(path: &str, error: &ServerError) {
    tracing::debug!(target: TARGET, path, %error, "looking for the znode of an unknown create");
}
