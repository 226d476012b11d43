//! The bodies of requests to the admin port.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_http::Refused;

use crate::chance::fault::{Fault, FaultKind};
use crate::record::request_kind::RequestKind;

/// Reads a body. No body is an empty object.
pub(super) fn read<T: DeserializeOwned>(body: Result<Bytes, BytesRejection>) -> Result<T, Refused> {
    let body = body.map_err(|error| {
        let why = format!("The body cannot be read: {}.", error.body_text());
        Refused::new(error.status(), why)
    })?;
    let text: &[u8] = if body.is_empty() { b"{}" } else { &body };
    serde_json::from_slice(text)
        .map_err(|error| Refused::malformed(format!("The body is not what it has to be: {error}.")))
}

/// A session that has to be named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfSession {
    pub(super) session: Session,
}

/// Which connections are cut. With neither field it is all of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cut {
    pub(super) session: Option<Session>,
    pub(super) member: Option<usize>,
}

/// How much longer it takes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Time {
    pub(super) milliseconds: Milliseconds,
}

/// When the members serve again. With no field it is at once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Within {
    #[serde(default)]
    pub(super) milliseconds: Milliseconds,
}

/// Which request is lost, or whose reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lost {
    pub(super) session: Option<Session>,
    request: Option<Kind>,
    under: Option<String>,
    nth: Option<u64>,
}

/// Which request comes late, or which reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delay {
    milliseconds: Milliseconds,
    #[serde(default)]
    what: Delayed,
    pub(super) session: Option<Session>,
    request: Option<Kind>,
    under: Option<String>,
    nth: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Delayed {
    Request,
    #[default]
    Reply,
}

impl Lost {
    pub(super) fn fault(self, kind: FaultKind) -> Fault {
        fault(kind, self.session, self.request, self.under, self.nth)
    }
}

impl Delay {
    pub(super) fn fault(self) -> Fault {
        let late = self.milliseconds.0;
        let kind = match self.what {
            Delayed::Request => FaultKind::RequestLate(late),
            Delayed::Reply => FaultKind::ReplyLate(late),
        };
        fault(kind, self.session, self.request, self.under, self.nth)
    }
}

fn fault(
    kind: FaultKind,
    session: Option<Session>,
    request: Option<Kind>,
    under: Option<String>,
    nth: Option<u64>,
) -> Fault {
    let mut fault = Fault::new(kind);
    if let Some(session) = session {
        fault = fault.of_session(session.0);
    }
    if let Some(request) = request {
        fault = fault.on(request.0);
    }
    if let Some(prefix) = under {
        fault = fault.under(&prefix);
    }
    match nth {
        Some(nth) => fault.nth(nth),
        None => fault,
    }
}

/// A time that the clock of the simulation can count: a day at most.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(try_from = "u64")]
pub(super) struct Milliseconds(pub(super) Duration);

impl TryFrom<u64> for Milliseconds {
    type Error = String;

    fn try_from(number: u64) -> Result<Milliseconds, String> {
        const LONGEST: u64 = 24 * 60 * 60 * 1_000;
        match number {
            0..=LONGEST => Ok(Milliseconds(Duration::from_millis(number))),
            _ => Err(format!(
                "{number} milliseconds are more than {LONGEST}, a day"
            )),
        }
    }
}

/// A session, named by its id in hexadecimal digits, as the four-letter words write it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Session(pub(super) SessionId);

impl TryFrom<String> for Session {
    type Error = String;

    fn try_from(text: String) -> Result<Session, String> {
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        let id = u64::from_str_radix(digits, 16);
        let id =
            id.map_err(|_| format!("{text:?} is no session id such as \"0x100000000000001\""))?;
        Ok(Session(SessionId(id as i64)))
    }
}

/// The kinds of requests, by ZooKeeper's names.
const KINDS: [(&str, RequestKind); 14] = [
    ("create", RequestKind::Create),
    ("delete", RequestKind::Delete),
    ("getChildren", RequestKind::List),
    ("getData", RequestKind::Get),
    ("exists", RequestKind::Exists),
    ("multi", RequestKind::Transact),
    // `setData`, `setACL` and `check`.
    ("set", RequestKind::Write),
    ("multiRead", RequestKind::GetEach),
    ("sync", RequestKind::Sync),
    ("removeWatches", RequestKind::RemoveWatch),
    ("setWatches", RequestKind::SetWatches),
    ("ping", RequestKind::Ping),
    ("closeSession", RequestKind::CloseSession),
    ("other", RequestKind::Other),
];

/// The names of the kinds of requests, in one sentence.
pub(super) fn kinds() -> String {
    KINDS.map(|(name, _)| name).join(", ")
}

/// A kind of request.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Kind(RequestKind);

impl TryFrom<String> for Kind {
    type Error = String;

    fn try_from(text: String) -> Result<Kind, String> {
        let known = KINDS.into_iter().find(|(name, _)| *name == text);
        let known = known.ok_or_else(|| format!("{text:?} is none of {}", kinds()));
        known.map(|(_, kind)| Kind(kind))
    }
}
