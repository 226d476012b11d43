//! Values of the protocol as values of the interface, and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1_smol::Sha1;
use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{self, AuthId, Permission};
use zookeeper_recipes_protocol::{Acl, CreateMode, ErrorCode, Id, Stat};

use crate::wire::answer::Failure;

/// The kind of a znode; `None` for a kind that the server does not know or has not enabled.
pub(super) fn mode(mode: CreateMode) -> Option<ensemble::CreateMode> {
    Some(match mode {
        CreateMode::Persistent => ensemble::CreateMode::Persistent,
        CreateMode::Ephemeral => ensemble::CreateMode::Ephemeral,
        CreateMode::PersistentSequential => ensemble::CreateMode::PersistentSequential,
        CreateMode::EphemeralSequential => ensemble::CreateMode::EphemeralSequential,
        CreateMode::Container => ensemble::CreateMode::Container,
        _ => return None,
    })
}

pub(super) fn acl_in(acl: Vec<Acl>) -> Vec<ensemble::Acl> {
    let all = [
        Permission::READ,
        Permission::WRITE,
        Permission::CREATE,
        Permission::DELETE,
        Permission::ADMIN,
    ];
    let entry = |entry: Acl| {
        let permitted = all.iter().filter(|it| entry.permissions & it.bits() != 0);
        let permission = permitted.fold(Permission::NONE, |all, one| all | *one);
        ensemble::Acl::new(permission, AuthId::new(&entry.id.scheme, &entry.id.id))
    };
    acl.into_iter().map(entry).collect()
}

pub(super) fn acl_out(acl: &[ensemble::Acl]) -> Vec<Acl> {
    let entry = |entry: &ensemble::Acl| Acl {
        permissions: entry.permission().bits(),
        id: Id {
            scheme: entry.scheme().to_owned(),
            id: entry.id().to_owned(),
        },
    };
    acl.iter().map(entry).collect()
}

pub(super) fn stat(stat: ensemble::Stat) -> Stat {
    Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_length: stat.data_length,
        num_children: stat.num_children,
        pzxid: stat.pzxid,
    }
}

/// The code of a failure.
pub(super) fn failure_code(failure: &Failure) -> ErrorCode {
    match failure {
        Failure::Refused { refusal, .. } => refusal_code(refusal),
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

pub(super) fn refusal_code(refusal: &Refusal) -> ErrorCode {
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

/// The identity that these credentials prove; `None` if the server does not know the scheme.
pub(super) fn identity(scheme: &str, credentials: &[u8]) -> Option<AuthId> {
    match scheme {
        "digest" => {
            let text = String::from_utf8_lossy(credentials);
            let user = text.split(':').next().unwrap_or_default();
            let hash = STANDARD.encode(Sha1::from(text.as_bytes()).digest().bytes());
            Some(AuthId::new("digest", &format!("{user}:{hash}")))
        }
        // The address is known anyway, and proves nothing.
        "ip" => Some(AuthId::new("ip", "")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::identity;

    #[test]
    fn digest_is_that_of_apaches_server() {
        let identity = identity("digest", b"super:test").expect("a known scheme");
        assert_eq!(identity.id(), "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
    }
}
