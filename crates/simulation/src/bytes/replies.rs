//! Replies and notifications of the simulation as frames of the protocol.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{AuthId, Event, Outcome};
use zookeeper_recipes_protocol::{
    ClientInfo, ConnectResponse, ErrorCode, EventType, KeeperState, MultiOperation, MultiResult,
    OpCode, PASSWORD_LENGTH, Reply, ReplyBody, ReplyHeader, RequestBody, WatcherEvent,
};

use super::values::{acl_out, failure_code, refusal_code, stat};
use crate::server::session::password_of;
use crate::wire::answer::{Answer, Failure};
use crate::wire::message::Downward;

/// The requests of a connection that are not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    pub(crate) awaited: VecDeque<Awaited>,
    /// True if the client does not know the field `readOnly` of the answer to its greeting.
    pub(crate) omits_read_only: bool,
}

/// A message that was encoded, as far as a server counts it.
#[derive(Debug)]
#[cfg_attr(not(feature = "embedded"), allow(dead_code))]
pub(crate) enum Encoded {
    Reply {
        opcode: OpCode,
        xid: i32,
        zxid: i64,
        since: Instant,
        authentication_failed: bool,
    },
    Event(EventType),
}

impl Replies {
    /// Appends the frame of a message that a server has sent.
    pub(crate) fn encode(&mut self, message: Downward, to: &mut Vec<u8>) -> Option<Encoded> {
        match message {
            Downward::Connected {
                session,
                timeout,
                read_only,
            } => {
                let password = password_of(session);
                self.encode_greeting(session, timeout, &password, read_only, to);
                None
            }
            Downward::Expired => {
                self.encode_greeting(0, Duration::ZERO, &[0; PASSWORD_LENGTH], false, to);
                None
            }
            Downward::Reply {
                id, zxid, result, ..
            } => {
                let place = self.awaited.iter().position(|it| it.id == id)?;
                let awaited = self.awaited.remove(place)?;
                let encoded = Encoded::Reply {
                    opcode: awaited.opcode,
                    xid: awaited.xid,
                    zxid,
                    since: awaited.since,
                    authentication_failed: result == Err(Failure::AuthenticationFailed),
                };
                encode_frame(awaited, zxid, result, to);
                Some(encoded)
            }
            Downward::Event { path, event } => {
                let kind = event_type(event)?;
                let state = KeeperState::SyncConnected;
                Reply::notification(WatcherEvent { kind, state, path }).encode_frame(to);
                Some(Encoded::Event(kind))
            }
            Downward::Torn { message, share } => {
                let before = to.len();
                let encoded = self.encode(*message, to);
                let number = to.len() - before;
                to.truncate(before + number * usize::from(share) / 256);
                encoded
            }
            Downward::Close => None,
        }
    }

    fn encode_greeting(
        &self,
        session_id: i64,
        timeout: Duration,
        password: &[u8],
        read_only: bool,
        to: &mut Vec<u8>,
    ) {
        let response = ConnectResponse {
            protocol_version: 0,
            timeout: timeout.as_millis() as i32,
            session_id,
            password: password.to_vec(),
            read_only: (!self.omits_read_only).then_some(read_only),
        };
        response.encode_frame(to);
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) id: u64,
    pub(crate) xid: i32,
    pub(crate) opcode: OpCode,
    since: Instant,
    /// The path of a sync, which is sent back.
    path: Option<String>,
    /// The operations of a transaction.
    operations: Vec<OpCode>,
}

impl Awaited {
    pub(crate) fn new(id: u64, xid: i32, body: &RequestBody) -> Awaited {
        let mut awaited = Awaited::malformed(id, xid, body.opcode());
        match body {
            RequestBody::Multi(operations) => {
                awaited.operations = operations.iter().map(opcode_of).collect();
            }
            RequestBody::Sync(request) => awaited.path = Some(request.path.clone()),
            _ => {}
        }
        awaited
    }

    /// A request whose content cannot be read.
    pub(crate) fn malformed(id: u64, xid: i32, opcode: OpCode) -> Awaited {
        Awaited {
            id,
            xid,
            opcode,
            since: Instant::now(),
            path: None,
            operations: Vec::new(),
        }
    }
}

/// The type of one operation. A container is one whatever it was asked for with.
fn opcode_of(operation: &MultiOperation) -> OpCode {
    match operation {
        MultiOperation::Create(request) if request.mode.is_container() => OpCode::CreateContainer,
        other => other.opcode(),
    }
}

/// Appends the frame of the reply to a request.
fn encode_frame(awaited: Awaited, zxid: i64, result: Result<Answer, Failure>, to: &mut Vec<u8>) {
    match result {
        Ok(Answer::ChildrenAndStat(names, of)) => {
            let header = ReplyHeader {
                xid: awaited.xid,
                zxid,
                error: ErrorCode::Ok,
            };
            let stat = (awaited.opcode == OpCode::GetChildren2).then(|| stat(of));
            Reply::encode_children_frame(&header, names.iter(), stat.as_ref(), to);
        }
        result => reply(awaited, zxid, result).encode_frame(to),
    }
}

fn reply(awaited: Awaited, zxid: i64, result: Result<Answer, Failure>) -> Reply {
    let xid = awaited.xid;
    let zxid = match awaited.opcode {
        OpCode::Auth | OpCode::Sasl => 0,
        _ if result == Err(Failure::UnknownType) => -1,
        _ => zxid,
    };
    match result {
        Err(Failure::Refused {
            operation: Some(operation),
            refusal,
        }) => {
            let results = failed_transaction(awaited.operations.len(), operation, &refusal);
            Reply::new(xid, zxid, ReplyBody::Multi(results))
        }
        Err(failure) => Reply::failed(xid, zxid, failure_code(&failure)),
        Ok(Answer::Exists(None)) => Reply::failed(xid, zxid, ErrorCode::NoNode),
        Ok(answer) => Reply::new(xid, zxid, body(awaited, answer)),
    }
}

/// One operation has failed; those before it were fine, those after it were not tried.
fn failed_transaction(count: usize, failed: usize, refusal: &Refusal) -> Vec<MultiResult> {
    let code = |index: usize| match index.cmp(&failed) {
        std::cmp::Ordering::Less => ErrorCode::Ok,
        std::cmp::Ordering::Equal => refusal_code(refusal),
        std::cmp::Ordering::Greater => ErrorCode::RuntimeInconsistency,
    };
    (0..count).map(|it| MultiResult::Error(code(it))).collect()
}

fn body(awaited: Awaited, answer: Answer) -> ReplyBody {
    match answer {
        Answer::Created(created) if awaited.opcode == OpCode::Create => {
            ReplyBody::Create { path: created.path }
        }
        Answer::Created(created) => ReplyBody::Create2 {
            path: created.path,
            stat: stat(created.stat),
        },
        Answer::Children(paths) => ReplyBody::Ephemerals { paths },
        Answer::DataIfAny(data, of) => ReplyBody::Data {
            data,
            stat: stat(of),
        },
        Answer::Exists(Some(of)) | Answer::Stat(of) => ReplyBody::Stat(stat(of)),
        Answer::Acl(acl, of) => ReplyBody::Acl {
            acl: acl_out(&acl),
            stat: stat(of),
        },
        Answer::Count(count) => ReplyBody::AllChildrenNumber { count },
        Answer::Identities(identities) => ReplyBody::WhoAmI {
            identities: identities.iter().map(client_info).collect(),
        },
        Answer::Outcomes(outcomes) => {
            let asked = awaited.operations.iter();
            let results = outcomes.into_iter().zip(asked).map(outcome).collect();
            ReplyBody::Multi(results)
        }
        Answer::Answers(answers) => {
            ReplyBody::Multi(answers.into_iter().map(each_answer).collect())
        }
        Answer::WatchAdded => ReplyBody::AddWatch(ErrorCode::Ok),
        Answer::Done => match awaited.path {
            Some(path) => ReplyBody::Sync { path },
            None => ReplyBody::Empty,
        },
        Answer::Exists(None) | Answer::ChildrenAndStat(..) => ReplyBody::Empty,
    }
}

fn client_info(identity: &AuthId) -> ClientInfo {
    let user = match identity.scheme() {
        "digest" => identity.id().split(':').next().unwrap_or_default(),
        _ => identity.id(),
    };
    ClientInfo {
        auth_scheme: identity.scheme().to_owned(),
        user: user.to_owned(),
    }
}

fn outcome((outcome, asked): (Outcome, &OpCode)) -> MultiResult {
    match outcome {
        Outcome::Checked => MultiResult::Check,
        Outcome::Deleted => MultiResult::Delete,
        Outcome::DataSet(of) => MultiResult::SetData { stat: stat(of) },
        Outcome::Created(created) if created.stat.is_invalid() || *asked == OpCode::Create => {
            MultiResult::Create { path: created.path }
        }
        Outcome::Created(created) => MultiResult::Create2 {
            path: created.path,
            stat: stat(created.stat),
        },
    }
}

fn each_answer(answer: Result<Answer, Refusal>) -> MultiResult {
    match answer {
        Ok(Answer::DataIfAny(data, of)) => MultiResult::GetData {
            data,
            stat: stat(of),
        },
        Ok(Answer::Children(children)) => MultiResult::GetChildren { children },
        Ok(_) => MultiResult::Error(ErrorCode::SystemError),
        Err(refusal) => MultiResult::Error(refusal_code(&refusal)),
    }
}

/// The type of an event. `None` for the end of a watch that servers send no event of.
fn event_type(event: Event) -> Option<EventType> {
    match event {
        Event::Created => Some(EventType::NodeCreated),
        Event::Deleted => Some(EventType::NodeDeleted),
        Event::DataChanged => Some(EventType::NodeDataChanged),
        Event::ChildrenChanged => Some(EventType::NodeChildrenChanged),
        Event::Unwatched | Event::SessionEnded(_) => None,
    }
}
