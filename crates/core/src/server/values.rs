//! What the errors of the protocol and of the connection mean for a recipe.

use zookeeper_recipes_connection::RequestError;
use zookeeper_recipes_protocol::ErrorCode;

use crate::invalid_input::InvalidInput;
use crate::server::error::{Refusal, ServerError, SessionEnd};

/// The error of a request without a reply.
pub(crate) fn no_reply(error: RequestError) -> ServerError {
    match error {
        RequestError::Ended(end) => ServerError::SessionOver(end),
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
