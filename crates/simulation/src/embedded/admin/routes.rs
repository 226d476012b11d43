//! The routes of the admin port.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_http::{Refused, json_response};

use super::bodies::{Cut, Delay, Lost, OfSession, Session, Time, Within, kinds, read};
use super::views;
use super::views::Administered;
use crate::chance::fault::{Fault, FaultKind};
use crate::client::connections::PEERS;
use crate::embedded::member::Member;
use crate::faults::{Backup, Faults};

/// Each route, the fields of its body, and what it does.
const ROUTES: &str = "\
GET / | | lists these routes
GET /members | | lists the members; the first is 0
POST /members/{member}/stop | | stops a member: its connections break, its port refuses
POST /members/{member}/start | | starts a member again, on the same port, with its data
POST /members/{member}/lag | milliseconds | \
    makes a follower apply each transaction later by this time; 0 ends it
POST /members/{member}/slow-handshakes | milliseconds | \
    makes a member answer each request for a session later by this time; 0 ends it
POST /data/back-up | | keeps the data of all members as a backup, in place of the one before
POST /data/restore | milliseconds | \
    restarts all members with the data of the backup; they serve after this time
POST /data/lose | milliseconds | restarts all members without data; they serve after this time
GET /sessions | | lists the sessions
GET /faults | | counts the faults that wait for their request
DELETE /faults | | drops the faults that wait for their request
POST /faults/cut | session or member, or neither for all | breaks connections
POST /faults/expire | session | expires a session
POST /faults/new-session-at-reconnect | session | \
    answers the next reconnect of a session with a new session
POST /faults/delay | \
    milliseconds; what (\"request\" or \"reply\"); session, request, under, nth | \
    delays one request or its reply, and all after it on the connection
POST /faults/long-path | milliseconds | \
    makes each message to and from all clients take longer by this time; 0 ends it
POST /faults/drop-request | session, request, under, nth | \
    breaks the connection before one request arrives
POST /faults/drop-reply | session, request, under, nth | \
    applies one request, then breaks the connection before the reply";

/// Longer than any server runs.
const FOR_GOOD: Duration = Duration::from_secs(1_000_000_000);

/// The most faults that wait for their request.
const MAX_FAULTS: usize = 1_000;

type Answered = Result<Response, Refused>;

type Body = Result<Bytes, BytesRejection>;

type Known = State<Arc<Administered>>;

pub(super) fn router(administered: Arc<Administered>) -> Router {
    Router::new()
        .route("/", get(routes))
        .route("/members", get(members))
        .route("/members/{member}/stop", post(stop))
        .route("/members/{member}/start", post(start))
        .route("/members/{member}/lag", post(lag))
        .route("/members/{member}/slow-handshakes", post(slow_handshakes))
        .route("/data/back-up", post(back_up))
        .route("/data/restore", post(restore))
        .route("/data/lose", post(lose_data))
        .route("/sessions", get(sessions))
        .route("/faults", get(faults).delete(drop_faults))
        .route("/faults/cut", post(cut))
        .route("/faults/expire", post(expire))
        .route("/faults/new-session-at-reconnect", post(forget))
        .route("/faults/delay", post(delay))
        .route("/faults/long-path", post(lengthen_path))
        .route("/faults/drop-request", post(drop_request))
        .route("/faults/drop-reply", post(drop_reply))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .with_state(administered)
}

fn ok(value: &Value) -> Answered {
    Ok(json_response(StatusCode::OK, value))
}

async fn unknown(method: Method, uri: Uri) -> Refused {
    let path = uri.path();
    Refused::not_found(format!(
        "There is no {method} {path}: GET / lists the routes."
    ))
}

async fn routes() -> Answered {
    let route = |line: &str| {
        let mut parts = line.split('|').map(str::trim);
        json!({ "route": parts.next(), "body": parts.next(), "does": parts.next() })
    };
    let routes: Vec<Value> = ROUTES.lines().map(route).collect();
    ok(&json!({
        "routes": routes,
        "fields": {
            "session": "the id of a session, as GET /sessions lists it",
            "request": format!("one of {}", kinds()),
            "under": "the beginning of the request's path",
            "nth": "which of the requests that match, counted from 1; the next one if absent",
        },
    }))
}

impl Administered {
    fn faults(&self) -> Faults {
        self.simulation.faults()
    }

    fn backup(&self) -> MutexGuard<'_, Option<Backup>> {
        self.backup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn member(&self, number: &str) -> Result<&Member, Refused> {
        let found = number
            .parse()
            .ok()
            .and_then(|it: usize| self.members.get(it));
        found.map(|member| &**member).ok_or_else(|| {
            let last = self.members.len() - 1;
            Refused::not_found(format!(
                "There is no member {number}: the members are numbered from 0 to {last}."
            ))
        })
    }

    fn session(&self, Session(session): Session) -> Result<SessionId, Refused> {
        let known = self.simulation.administrator().timeout_of(session);
        known.map(|_| session).ok_or_else(|| {
            let id = views::session_id(session);
            Refused::not_found(format!(
                "There is no session {id}: GET /sessions lists them."
            ))
        })
    }

    fn inject(&self, session: Option<Session>, fault: Fault) -> Answered {
        session.map(|it| self.session(it)).transpose()?;
        if self.faults().waiting() >= MAX_FAULTS {
            let why = format!("{MAX_FAULTS} faults wait already: DELETE /faults drops them.");
            return Err(Refused::new(StatusCode::CONFLICT, why));
        }
        self.faults().inject(fault);
        self.waiting()
    }

    fn waiting(&self) -> Answered {
        ok(&json!({ "waiting": self.faults().waiting() }))
    }
}

async fn members(State(known): Known) -> Answered {
    let members: Vec<Value> = known.members.iter().map(|it| views::member(it)).collect();
    ok(&json!({ "members": members }))
}

async fn stop(State(known): Known, Path(member): Path<String>) -> Answered {
    let member = known.member(&member)?;
    known.faults().stop_member(member.server);
    ok(&views::member(member))
}

async fn start(State(known): Known, Path(member): Path<String>) -> Answered {
    let member = known.member(&member)?;
    known.faults().start_member(member.server);
    ok(&views::member(member))
}

async fn lag(State(known): Known, Path(member): Path<String>, body: Body) -> Answered {
    let member = known.member(&member)?;
    let Time { milliseconds } = read(body)?;
    known.faults().lag(member.server, milliseconds.0);
    ok(&views::member(member))
}

async fn slow_handshakes(State(known): Known, Path(member): Path<String>, body: Body) -> Answered {
    let member = known.member(&member)?;
    let Time { milliseconds } = read(body)?;
    let by = milliseconds.0;
    let faults = known.faults();
    faults.slow_handshakes(member.server, by..=by, FOR_GOOD);
    ok(&views::member(member))
}

async fn lengthen_path(State(known): Known, body: Body) -> Answered {
    let Time { milliseconds } = read(body)?;
    let clients = known.simulation.process(PEERS);
    clients.lengthen_path(milliseconds.0, FOR_GOOD);
    ok(&json!({}))
}

async fn back_up(State(known): Known) -> Answered {
    let backup = known.faults().back_up();
    *known.backup() = Some(backup);
    ok(&json!({}))
}

async fn restore(State(known): Known, body: Body) -> Answered {
    let Within { milliseconds } = read(body)?;
    let Some(backup) = known.backup().clone() else {
        let why = "There is no backup: POST /data/back-up makes one.";
        return Err(Refused::new(StatusCode::CONFLICT, why.to_owned()));
    };
    known.faults().restore(&backup, milliseconds.0);
    members(State(known)).await
}

async fn lose_data(State(known): Known, body: Body) -> Answered {
    let Within { milliseconds } = read(body)?;
    known.faults().lose_data(milliseconds.0);
    members(State(known)).await
}

async fn sessions(State(known): Known) -> Answered {
    ok(&json!({ "sessions": views::sessions(&known) }))
}

async fn faults(State(known): Known) -> Answered {
    known.waiting()
}

async fn drop_faults(State(known): Known) -> Answered {
    known.faults().stop();
    known.waiting()
}

async fn cut(State(known): Known, body: Body) -> Answered {
    let Cut { session, member } = read(body)?;
    let faults = known.faults();
    match (session, member) {
        (Some(_), Some(_)) => {
            let why = "The body names a session and a member, of which it may name one.";
            return Err(Refused::malformed(why));
        }
        (Some(session), None) => faults.disconnect(known.session(session)?),
        (None, Some(member)) => {
            let member = known.member(&member.to_string())?;
            faults.disconnect_from(member.server);
        }
        (None, None) => {
            for member in &known.members {
                faults.disconnect_from(member.server);
            }
        }
    }
    ok(&json!({}))
}

async fn expire(State(known): Known, body: Body) -> Answered {
    let OfSession { session } = read(body)?;
    let session = known.session(session)?;
    known.simulation.administrator().expire(session);
    ok(&json!({}))
}

async fn forget(State(known): Known, body: Body) -> Answered {
    let OfSession { session } = read(body)?;
    known.faults().forget(known.session(session)?);
    ok(&json!({}))
}

async fn delay(State(known): Known, body: Body) -> Answered {
    let delay: Delay = read(body)?;
    known.inject(delay.session, delay.fault())
}

async fn drop_request(State(known): Known, body: Body) -> Answered {
    let lost: Lost = read(body)?;
    known.inject(lost.session, lost.fault(FaultKind::RequestLost))
}

async fn drop_reply(State(known): Known, body: Body) -> Answered {
    let lost: Lost = read(body)?;
    known.inject(lost.session, lost.fault(FaultKind::ReplyLost))
}
