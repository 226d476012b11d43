//! The marked_release: how a release says that it is one.
//!
//! What it is for, and why it can be believed: [`docs::handoff`](crate::docs::handoff).

use tokio::sync::OnceCell;

use crate::contender::Identity;
use crate::server::ensemble::{Acl, AuthId, CreateMode, Operation, Permission, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::{Attachment, LiveSession};

/// The access control list of a znode that those may read whom `acl` lets read, and that `owner`
/// alone may write to.
pub(crate) fn written_by_owner_alone(acl: &[Acl], owner: &AuthId) -> Vec<Acl> {
    let readers = acl
        .iter()
        .filter(|entry| entry.permission().has(Permission::READ))
        .map(|entry| Acl::new(Permission::READ, entry.auth_id().clone()));
    let owner = Acl::new(Permission::ALL, owner.clone());
    readers.chain([owner]).collect()
}

/// Whether a session's own identity keeps others from writing, once that was tried.
#[derive(Default)]
struct IsBelieved(OnceCell<bool>);

impl Attachment for IsBelieved {
    fn attach(_live: &LiveSession) -> IsBelieved {
        IsBelieved::default()
    }
}

/// The identity that lets nobody but this session write to its contenders in the directory, if
/// there is one. One request, the first time that the directory is there to try it in.
pub(crate) async fn sole_writer(
    live: &LiveSession,
    server: &dyn ServerSession,
    directory: &str,
    identity: &Identity,
) -> Option<AuthId> {
    let owner = server.own_identity()?;
    let tried = live.attached::<IsBelieved>();
    let believed = tried.0.get_or_try_init(|| async {
        let answer = is_believed(server, directory, identity, &owner).await;
        answer.ok_or(())
    });
    let believed = *believed.await.ok()?;
    believed.then_some(owner)
}

/// Finds out whether the ensemble lets `owner`, and nobody but it, write to such a znode. `None`
/// where no answer says so.
///
/// A server may be told to check no access control list, or to digest credentials in another way
/// than by default. One request, a transaction that is refused in any case, so that nothing is left
/// behind; by which of its operations is the answer.
async fn is_believed(
    server: &dyn ServerSession,
    directory: &str,
    identity: &Identity,
    owner: &AuthId,
) -> Option<bool> {
    const OWN_WRITE: usize = 1;
    const FOREIGN_WRITE: usize = 3;
    const NEVER_TRUE: usize = 4;
    let everyone = AuthId::anyone();
    let own = format!("{directory}/{}own", identity.prefix());
    let foreign = format!("{directory}/{}foreign", identity.prefix());
    let create = |path: &str, acl: Vec<Acl>| Operation::Create {
        path: path.to_owned(),
        data: Vec::new(),
        mode: CreateMode::Ephemeral,
        acl,
    };
    let readable = [Acl::new(Permission::READ, everyone)];
    let operations = [
        create(&own, written_by_owner_alone(&readable, owner)),
        write(&own),
        create(&foreign, readable.to_vec()),
        write(&foreign),
        Operation::Check {
            path: own,
            version: Some(i32::MAX),
        },
    ];
    let refused = server.transact(&operations).await.err()?;
    match (refused.operation, refused.error) {
        (Some(FOREIGN_WRITE), ServerError::Refused(Refusal::NoAuth)) => Some(true),
        (Some(OWN_WRITE), ServerError::Refused(Refusal::NoAuth)) => Some(false),
        (Some(NEVER_TRUE), ServerError::Refused(_)) => Some(false),
        _ => None,
    }
}

/// Deletes a holder's znode, and says in the same transaction that it is a release: whoever watches
/// the znode is told of a write to it, and of nothing else. One request.
pub(crate) async fn release(server: &dyn ServerSession, path: &str) -> Result<(), ServerError> {
    let operations = [
        write(path),
        Operation::Delete {
            path: path.to_owned(),
            version: None,
        },
    ];
    match server.transact(&operations).await {
        Ok(_) => Ok(()),
        Err(failure) => Err(failure.error),
    }
}

fn write(path: &str) -> Operation {
    Operation::SetData {
        path: path.to_owned(),
        data: Vec::new(),
        version: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::server::ensemble::Ensemble;
    use crate::session::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn server_is_believed_that_refuses_a_write_to_others_alone() {
        let (_live, script) = Scripted::open(Duration::ZERO);
        for (operation, refusal, believed) in [
            (0, Refusal::NoNode, None),
            // It does not know the identity for its owner's.
            (1, Refusal::NoAuth, Some(false)),
            (3, Refusal::NoAuth, Some(true)),
            // It checks no access control list.
            (4, Refusal::BadVersion, Some(false)),
        ] {
            script.refuse(operation, refusal);
            let identity = script.identity();
            let answer = is_believed(&*script, "/locks", &identity, &AuthId::anyone()).await;
            assert_eq!(answer, believed, "refused at {operation}");
        }
    }
}
