//! Conversions between the values of the crate `zookeeper-client` and those of the protocol.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::future::FutureExt;
use zookeeper_client as client;
use zookeeper_recipes_connection::DisconnectReason;
use zookeeper_recipes_core::SessionEnd;
use zookeeper_recipes_core::ensemble::{
    Acl, CreateMode, EventType, Permission, RequestError, Stat, WatchEvent,
};
use zookeeper_recipes_protocol::ErrorCode;

/// An access control list for the client.
pub(crate) fn client_acl(acl: &[Acl]) -> Vec<client::Acl> {
    let permissions = [
        (Permission::READ, client::Permission::READ),
        (Permission::WRITE, client::Permission::WRITE),
        (Permission::CREATE, client::Permission::CREATE),
        (Permission::DELETE, client::Permission::DELETE),
        (Permission::ADMIN, client::Permission::ADMIN),
    ];
    let entries = acl.iter().map(|entry| {
        let held = permissions
            .iter()
            .filter(|(ours, _)| entry.permissions.has(*ours));
        let held = held.fold(client::Permission::NONE, |all, (_, one)| all | *one);
        client::Acl::new(held, client::AuthId::new(&entry.id.scheme, &entry.id.id))
    });
    entries.collect()
}

/// A create mode for the client.
///
/// # Errors
///
/// A mode that core does not use, such as one with a time to live.
pub(crate) fn client_mode(mode: CreateMode) -> Result<client::CreateMode, Failure> {
    Ok(match mode {
        CreateMode::Persistent => client::CreateMode::Persistent,
        CreateMode::PersistentSequential => client::CreateMode::PersistentSequential,
        CreateMode::Ephemeral => client::CreateMode::Ephemeral,
        CreateMode::EphemeralSequential => client::CreateMode::EphemeralSequential,
        CreateMode::Container => client::CreateMode::Container,
        _ => return Err(Failure::Refused(ErrorCode::BadArguments)),
    })
}

/// The metadata that the client library has read.
pub(crate) fn stat_of(stat: client::Stat) -> Stat {
    Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        pzxid: stat.pzxid,
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_length: stat.data_length,
        num_children: stat.num_children,
    }
}

/// The event of a watch of the client.
pub(crate) async fn event_of(watcher: client::OneshotWatcher) -> WatchEvent {
    // The client library panics here after its runtime has shut down.
    let changed = AssertUnwindSafe(watcher.changed()).catch_unwind();
    let Ok(event) = changed.await else {
        return WatchEvent::Unwatched;
    };
    WatchEvent::Fired(match event.event_type {
        client::EventType::NodeCreated => EventType::NodeCreated,
        client::EventType::NodeDeleted => EventType::NodeDeleted,
        client::EventType::NodeDataChanged => EventType::NodeDataChanged,
        client::EventType::NodeChildrenChanged => EventType::NodeChildrenChanged,
        client::EventType::Session => return WatchEvent::Unwatched,
    })
}

pub(crate) fn session_end(state: client::SessionState) -> SessionEnd {
    match state {
        client::SessionState::Closed => SessionEnd::Closed,
        client::SessionState::AuthFailed => SessionEnd::AuthenticationFailed,
        _ => SessionEnd::Expired,
    }
}

/// Why a request has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server has refused it.
    Refused(ErrorCode),
    /// The session is over, or the outcome is unknown.
    NoReply(RequestError),
}

impl From<client::Error> for Failure {
    /// A code that is not known says nothing of the outcome: some servers answer a write so whose
    /// outcome they do not know.
    fn from(error: client::Error) -> Failure {
        use client::Error;
        let over = |end| Failure::NoReply(RequestError::Ended(end));
        Failure::Refused(match error {
            Error::NoNode => ErrorCode::NoNode,
            Error::NodeExists => ErrorCode::NodeExists,
            Error::BadVersion => ErrorCode::BadVersion,
            Error::NotEmpty => ErrorCode::NotEmpty,
            Error::NoAuth => ErrorCode::NoAuth,
            Error::InvalidAcl => ErrorCode::InvalidAcl,
            Error::BadArguments(_) => ErrorCode::BadArguments,
            Error::NoChildrenForEphemerals => ErrorCode::NoChildrenForEphemerals,
            Error::QuotaExceeded => ErrorCode::QuotaExceeded,
            Error::Throttled => ErrorCode::ThrottledOp,
            Error::Unimplemented => ErrorCode::Unimplemented,
            Error::NotReadOnly => ErrorCode::NotReadOnly,
            Error::SessionExpired => return over(SessionEnd::Expired),
            Error::AuthFailed => return over(SessionEnd::AuthenticationFailed),
            Error::ClientClosed => return over(SessionEnd::Closed),
            other => return unknown(other),
        })
    }
}

/// The failure of a request whose outcome is unknown, for this reason.
pub(crate) fn unknown(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    let cause = DisconnectReason::Io(Arc::new(io::Error::other(cause)));
    Failure::NoReply(RequestError::Broken(cause))
}

/// Turns a panic of the client library into an error with an unknown outcome.
///
/// The client library panics if a reply is too short.
pub(crate) async fn understood<T, E: From<client::Error>>(
    reply: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let reply = AssertUnwindSafe(reply).catch_unwind().await;
    reply.unwrap_or_else(|_| {
        let problem = "a reply that cannot be decoded".to_owned();
        Err(client::Error::UnexpectedError(problem).into())
    })
}
