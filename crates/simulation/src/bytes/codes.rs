//! The error codes of refusals.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_protocol::ErrorCode;

use crate::wire::answer::Failure;

/// The code that a client is told.
pub(crate) fn of_failure(failure: &Failure) -> ErrorCode {
    match failure {
        Failure::Refused { refusal, .. } => of_refusal(refusal),
        Failure::SessionExpired => ErrorCode::SessionExpired,
        Failure::SessionMoved => ErrorCode::SessionMoved,
        Failure::NoWatch => ErrorCode::NoWatcher,
        Failure::OutcomeUnknown => ErrorCode::OperationTimeout,
        Failure::Malformed => ErrorCode::MarshallingError,
        Failure::UnknownType => ErrorCode::Unimplemented,
        Failure::ReconfigurationDisabled => ErrorCode::ReconfigDisabled,
        Failure::AuthenticationFailed => ErrorCode::AuthFailed,
    }
}

pub(crate) fn of_refusal(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::NoNode => ErrorCode::NoNode,
        Refusal::NodeExists => ErrorCode::NodeExists,
        Refusal::BadVersion => ErrorCode::BadVersion,
        Refusal::NotEmpty => ErrorCode::NotEmpty,
        Refusal::NoAuth => ErrorCode::NoAuth,
        Refusal::InvalidAcl => ErrorCode::InvalidAcl,
        Refusal::BadArguments(_) => ErrorCode::BadArguments,
        Refusal::NoChildrenForEphemerals => ErrorCode::NoChildrenForEphemerals,
        Refusal::QuotaExceeded => ErrorCode::QuotaExceeded,
        Refusal::Throttled => ErrorCode::ThrottledOp,
        Refusal::Unimplemented => ErrorCode::Unimplemented,
        Refusal::ReadOnly => ErrorCode::NotReadOnly,
        _ => ErrorCode::SystemError,
    }
}
