//! The marked release: a release that tells the waiter that it is a release.
//!
//! [`docs::handoff`](crate::docs::handoff) says what it saves and why a waiter can believe it.

use std::sync::{Arc, Mutex, OnceLock};

use futures_util::future::{BoxFuture, FutureExt, Shared, WeakShared};

use crate::contender::Identity;
use crate::server::ensemble::{Acl, AuthId, CreateMode, Operation, Permission, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::{Attachment, LiveSession};
use crate::sync::lock;

/// The access control list of a contender's znode that only `owner` can write to.
///
/// The readers of `acl` can read the znode.
pub(crate) fn written_by_owner_alone(acl: &[Acl], owner: &AuthId) -> Vec<Acl> {
    let readers = acl
        .iter()
        .filter(|entry| entry.permission().has(Permission::READ))
        .map(|entry| Acl::new(Permission::READ, entry.auth_id().clone()));
    let owner = Acl::new(Permission::ALL, owner.clone());
    readers.chain([owner]).collect()
}

/// True if only the session's own identity can write to such a znode.
///
/// Empty until it is tried.
#[derive(Default)]
struct IsBelieved {
    answer: OnceLock<bool>,
    /// The trial without an answer. Only the attempts that wait for it keep it.
    trial: Mutex<Option<WeakShared<TrialFuture>>>,
}

type TrialFuture = BoxFuture<'static, Option<bool>>;

impl Attachment for IsBelieved {
    fn attach(_live: &LiveSession) -> IsBelieved {
        IsBelieved::default()
    }
}

impl IsBelieved {
    /// The trial that is under way, or a new one.
    ///
    /// Each attempt that waits for the trial polls it. So no attempt waits for another attempt,
    /// which nobody may poll.
    fn trial(&self, begin: impl FnOnce() -> TrialFuture) -> Shared<TrialFuture> {
        let mut trial = lock(&self.trial);
        let under_way = trial.as_ref().and_then(WeakShared::upgrade);
        let may_answer = |trial: &Shared<TrialFuture>| trial.peek() != Some(&None);
        under_way.filter(may_answer).unwrap_or_else(|| {
            let begun = begin().shared();
            *trial = begun.downgrade();
            begun
        })
    }
}

/// The identity that alone can write to this session's contenders, if the ensemble enforces it.
///
/// Sends one request, the first time that the directory exists.
pub(crate) async fn sole_writer(
    live: &LiveSession,
    server: &Arc<dyn ServerSession>,
    directory: &str,
    identity: &Identity,
) -> Option<AuthId> {
    let owner = server.own_identity()?;
    let tried = live.attached::<IsBelieved>();
    let believed = match tried.answer.get() {
        Some(believed) => *believed,
        None => {
            let trial = tried.trial(|| {
                let (server, directory) = (server.clone(), directory.to_owned());
                let (identity, owner) = (*identity, owner.clone());
                async move { is_believed(&*server, &directory, &identity, &owner).await }.boxed()
            });
            let believed = trial.await?;
            *tried.answer.get_or_init(|| believed)
        }
    };
    believed.then_some(owner)
}

/// Tries whether the ensemble lets `owner`, and no other identity, write to such a znode.
///
/// A server may be configured to check no access control lists, or to digest credentials in another
/// way. Sends one request: a transaction that the server refuses in every case, so that no znode
/// remains. The refused operation is the answer. Returns `None` if the reply does not tell.
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

/// Deletes a holder's znode, and marks the deletion as a release. Sends one request.
///
/// The transaction writes to the znode first. A watch on the znode reports the write, and not the
/// deletion.
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
            // The server does not recognise the identity as the owner's.
            (1, Refusal::NoAuth, Some(false)),
            (3, Refusal::NoAuth, Some(true)),
            // The server checks no access control lists.
            (4, Refusal::BadVersion, Some(false)),
        ] {
            script.refuse(operation, refusal);
            let identity = script.identity();
            let answer = is_believed(&*script, "/locks", &identity, &AuthId::anyone()).await;
            assert_eq!(answer, believed, "refused at {operation}");
        }
    }
}
