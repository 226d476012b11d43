//! Conversions between the values of the crate `zookeeper-client` and those of this crate.

use std::panic::AssertUnwindSafe;

use futures_util::future::FutureExt;
use zookeeper_client as client;

use zookeeper_recipes_core::ensemble::{
    Acl, ConnectionState, CreateMode, Event, Permission, Stat, Watch,
};
use zookeeper_recipes_core::{Refusal, ServerError, SessionEnd};

/// An access control list for the client.
pub(crate) fn client_acl(acl: &[Acl]) -> Vec<client::Acl> {
    let entries = acl.iter().map(|entry| {
        let id = client::AuthId::new(&entry.id.scheme, &entry.id.id);
        client::Acl::new(client_permission(entry.permissions), id)
    });
    entries.collect()
}

fn client_permission(permission: Permission) -> client::Permission {
    let each = [
        (Permission::READ, client::Permission::READ),
        (Permission::WRITE, client::Permission::WRITE),
        (Permission::CREATE, client::Permission::CREATE),
        (Permission::DELETE, client::Permission::DELETE),
        (Permission::ADMIN, client::Permission::ADMIN),
    ];
    let held = each.into_iter().filter(|(ours, _)| permission.has(*ours));
    held.fold(client::Permission::NONE, |all, (_, one)| all | one)
}

/// A create mode for the client.
///
/// # Errors
///
/// A mode that core does not use, such as one with a time to live.
pub(crate) fn client_mode(mode: CreateMode) -> Result<client::CreateMode, ServerError> {
    Ok(match mode {
        CreateMode::Persistent => client::CreateMode::Persistent,
        CreateMode::PersistentSequential => client::CreateMode::PersistentSequential,
        CreateMode::Ephemeral => client::CreateMode::Ephemeral,
        CreateMode::EphemeralSequential => client::CreateMode::EphemeralSequential,
        CreateMode::Container => client::CreateMode::Container,
        other => {
            let problem = format!("the mode of a create is {other:?}");
            return Err(ServerError::Refused(Refusal::BadArguments(problem)));
        }
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

pub(crate) fn watch(watcher: client::OneshotWatcher) -> Watch {
    async move {
        // The client library panics here after its runtime has shut down.
        let changed = AssertUnwindSafe(watcher.changed()).catch_unwind();
        let Ok(event) = changed.await else {
            return Event::SessionEnded(SessionEnd::Closed);
        };
        match event.event_type {
            client::EventType::NodeCreated => Event::Created,
            client::EventType::NodeDeleted => Event::Deleted,
            client::EventType::NodeDataChanged => Event::DataChanged,
            client::EventType::NodeChildrenChanged => Event::ChildrenChanged,
            client::EventType::Session => Event::SessionEnded(session_end(event.session_state)),
        }
    }
    .boxed()
}

pub(crate) fn session_end(state: client::SessionState) -> SessionEnd {
    match state {
        client::SessionState::Closed => SessionEnd::Closed,
        client::SessionState::AuthFailed => SessionEnd::AuthenticationFailed,
        _ => SessionEnd::Expired,
    }
}

pub(crate) fn connection_state(state: client::SessionState) -> ConnectionState {
    match state {
        client::SessionState::SyncConnected => ConnectionState::Connected,
        client::SessionState::Disconnected | client::SessionState::ConnectedReadOnly => {
            ConnectionState::Disconnected
        }
        over => ConnectionState::Ended(session_end(over)),
    }
}

/// Classifies an error of the client: refused, session over, or outcome unknown.
///
/// A code that is not known says nothing of the outcome: some servers answer a write so whose
/// outcome they do not know.
pub(crate) fn classify(error: client::Error) -> ServerError {
    use client::Error;
    let refusal = match error {
        Error::NoNode => Refusal::NoNode,
        Error::NodeExists => Refusal::NodeExists,
        Error::BadVersion => Refusal::BadVersion,
        Error::NotEmpty => Refusal::NotEmpty,
        Error::NoAuth => Refusal::NoAuth,
        Error::InvalidAcl => Refusal::InvalidAcl,
        Error::BadArguments(what) => Refusal::BadArguments((*what).to_owned()),
        Error::NoChildrenForEphemerals => Refusal::NoChildrenForEphemerals,
        Error::QuotaExceeded => Refusal::QuotaExceeded,
        Error::Throttled => Refusal::Throttled,
        Error::Unimplemented => Refusal::Unimplemented,
        Error::NotReadOnly => Refusal::ReadOnly,
        Error::NoWatcher | Error::ReconfigDisabled => Refusal::Other(error.to_string()),
        Error::SessionExpired => return ServerError::SessionOver(SessionEnd::Expired),
        Error::AuthFailed => return ServerError::SessionOver(SessionEnd::AuthenticationFailed),
        Error::ClientClosed => return ServerError::SessionOver(SessionEnd::Closed),
        other => return ServerError::outcome_unknown(other),
    };
    ServerError::Refused(refusal)
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
