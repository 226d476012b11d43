//! Conversions between the values of the protocol and those of this crate.

use std::time::Duration;

use zookeeper_recipes_connection::{End, RequestError, State, WatchEvent};
use zookeeper_recipes_protocol::{
    CheckRequest, CreateRequest, DeleteRequest, ErrorCode, EventType, MultiOperation,
    SetDataRequest,
};

use crate::invalid_input::InvalidInput;
use crate::server::ensemble::{Acl, ConnectionState, CreateMode, Event, Operation};
use crate::server::error::{Refusal, ServerError, SessionEnd};

pub(crate) fn create_request(
    path: String,
    data: &[u8],
    mode: CreateMode,
    acl: &[Acl],
) -> CreateRequest {
    CreateRequest {
        path,
        data: Some(data.to_vec()),
        acl: acl.to_vec(),
        mode,
    }
}

pub(crate) fn multi_operation(operation: Operation) -> MultiOperation {
    let any = |version: Option<i32>| version.unwrap_or(-1);
    match operation {
        Operation::Check { path, version } => MultiOperation::Check(CheckRequest {
            path,
            version: any(version),
        }),
        Operation::Create {
            path,
            data,
            mode,
            acl,
        } => {
            let request = create_request(path, &data, mode, &acl);
            match mode {
                CreateMode::Container => MultiOperation::CreateContainer(request),
                _ => MultiOperation::Create2(request),
            }
        }
        Operation::SetData {
            path,
            data,
            version,
        } => MultiOperation::SetData(SetDataRequest {
            path,
            data: Some(data),
            version: any(version),
        }),
        Operation::Delete { path, version } => MultiOperation::Delete(DeleteRequest {
            path,
            version: any(version),
        }),
    }
}

/// The event of a watch. `end` is the end of the session, if it is over.
pub(crate) fn event_of(event: WatchEvent, end: Option<End>) -> Event {
    match (event, end) {
        (WatchEvent::Fired(EventType::NodeCreated), _) => Event::Created,
        (WatchEvent::Fired(EventType::NodeDeleted), _) => Event::Deleted,
        (WatchEvent::Fired(EventType::NodeDataChanged), _) => Event::DataChanged,
        (WatchEvent::Fired(EventType::NodeChildrenChanged), _) => Event::ChildrenChanged,
        (_, Some(end)) => Event::SessionEnded(session_end(end)),
        _ => Event::Unwatched,
    }
}

pub(crate) fn session_end(end: End) -> SessionEnd {
    match end {
        End::AuthenticationFailed => SessionEnd::AuthenticationFailed,
        End::Closed => SessionEnd::Closed,
        End::Refused => SessionEnd::Refused,
        End::SaslRequired => SessionEnd::SaslRequired,
        _ => SessionEnd::Expired,
    }
}

/// The state of the connection of a session that was opened with this timeout.
pub(crate) fn connection_state(state: State, opened_with: Duration) -> ConnectionState {
    match state {
        // The lease counts with the longer timeout, and the server expires by the shorter.
        State::Connected { timeout, .. } | State::Disconnected { timeout }
            if timeout < opened_with =>
        {
            ConnectionState::Ended(SessionEnd::TimeoutShortened)
        }
        State::Connected { .. } => ConnectionState::Connected,
        State::Disconnected { .. } => ConnectionState::Disconnected,
        State::Ended(end) => ConnectionState::Ended(session_end(end)),
    }
}

/// The error of a request without a reply.
pub(crate) fn no_reply(error: RequestError) -> ServerError {
    match error {
        RequestError::Ended(end) => ServerError::SessionOver(session_end(end)),
        RequestError::RequestTooLong { length, limit } => {
            let problem = format!(
                "is longer than the {limit} bytes that the servers accept (jute.maxbuffer)"
            );
            let length = format!("of {length} bytes");
            let problem = InvalidInput::new("request", length, problem);
            ServerError::Refused(Refusal::TooLong(problem))
        }
        RequestError::TooLong { length, limit } => {
            ServerError::Refused(Refusal::ReplyTooLong { length, limit })
        }
        RequestError::Unreadable(cause) => {
            ServerError::Refused(Refusal::UnreadableReply(cause.to_string()))
        }
        RequestError::Unsupported(_) => ServerError::Refused(Refusal::Unimplemented),
        other => ServerError::outcome_unknown(other),
    }
}

/// The error of a request that the server answered with an error code.
pub fn error_of_code(code: ErrorCode) -> ServerError {
    let refusal = match code {
        ErrorCode::NoNode => Refusal::NoNode,
        ErrorCode::NodeExists => Refusal::NodeExists,
        ErrorCode::BadVersion => Refusal::BadVersion,
        ErrorCode::NotEmpty => Refusal::NotEmpty,
        ErrorCode::NoAuth => Refusal::NoAuth,
        ErrorCode::InvalidAcl => Refusal::InvalidAcl,
        ErrorCode::BadArguments => Refusal::BadArguments(code.to_string()),
        ErrorCode::NoChildrenForEphemerals => Refusal::NoChildrenForEphemerals,
        ErrorCode::QuotaExceeded => Refusal::QuotaExceeded,
        ErrorCode::ThrottledOp => Refusal::Throttled,
        ErrorCode::Unimplemented => Refusal::Unimplemented,
        ErrorCode::NotReadOnly => Refusal::ReadOnly,
        ErrorCode::EphemeralOnLocalSession => Refusal::LocalSession,
        ErrorCode::NoWatcher => Refusal::Other(code.to_string()),
        ErrorCode::SessionExpired => return ServerError::SessionOver(SessionEnd::Expired),
        ErrorCode::AuthFailed | ErrorCode::SessionClosedRequireSaslAuth => {
            return ServerError::SessionOver(SessionEnd::AuthenticationFailed);
        }
        unknown => return ServerError::outcome_unknown(unknown.to_string()),
    };
    ServerError::Refused(refusal)
}

#[cfg(test)]
#[path = "../../tests/unit/values.rs"]
mod tests;
