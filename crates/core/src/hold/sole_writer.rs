//! The identity that alone can write to a contender's znode. Its release can then be marked.

use std::sync::{Arc, OnceLock};

use futures_util::future::FutureExt;

use crate::contender::Identity;
use crate::server::ensemble::{Acl, AuthId, CreateMode, Operation, Permission, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::sync::SharedWork;

/// The access control list of a contender's znode that only `owner` can write to.
///
/// The readers of `acl` can read the znode.
pub(crate) fn written_by_owner_alone(acl: &[Acl], owner: &AuthId) -> Vec<Acl> {
    let readers = acl
        .iter()
        .filter(|entry| entry.permissions.has(Permission::READ))
        .map(|entry| Acl::new(Permission::READ, entry.id.clone()));
    let owner = Acl::new(Permission::ALL, owner.clone());
    readers.chain([owner]).collect()
}

/// Knows whether only the session's own identity can write to its contenders, once it is tried.
#[derive(Default)]
pub(crate) struct SoleWriter {
    is_enforced: OnceLock<bool>,
    trial: SharedWork<Option<bool>>,
}

impl SoleWriter {
    /// The identity that alone can write to this session's contenders, if the ensemble enforces it.
    ///
    /// The method sends one request in a session, and another one if the directory did not exist.
    pub(crate) async fn writer(
        &self,
        server: &Arc<dyn ServerSession>,
        directory: &str,
        identity: &Identity,
    ) -> Option<AuthId> {
        let owner = server.own_identity()?;
        let enforced = match self.is_enforced.get() {
            Some(enforced) => *enforced,
            None => {
                let begin = || {
                    let (server, owner) = (server.clone(), owner.clone());
                    let (directory, identity) = (directory.to_owned(), *identity);
                    async move { is_enforced(&*server, &directory, &identity, &owner).await }
                        .boxed()
                };
                let enforced = self.trial.join(begin).await?;
                *self.is_enforced.get_or_init(|| enforced)
            }
        };
        enforced.then_some(owner)
    }
}

/// Tries whether the ensemble lets `owner`, and no other identity, write to such a znode.
///
/// A server may be configured to check no access control lists, or to digest credentials in another
/// way. The trial is one request: a transaction that the server refuses in every case, so that no
/// znode remains. The refused operation is the answer. The result is `None` if the reply does not
/// say.
async fn is_enforced(
    server: &dyn ServerSession,
    directory: &str,
    identity: &Identity,
    owner: &AuthId,
) -> Option<bool> {
    const OWN_WRITE: usize = 1;
    const FOREIGN_WRITE: usize = 3;
    const NEVER_TRUE: usize = 4;
    let everyone = AuthId::anyone();
    let own = identity.path(directory, "own");
    let foreign = identity.path(directory, "foreign");
    let create = |path: &str, acl| Operation::create(path, [], CreateMode::Ephemeral, acl);
    let readable = [Acl::new(Permission::READ, everyone)];
    let operations = [
        create(&own, written_by_owner_alone(&readable, owner)),
        Operation::set_data(&own, []),
        create(&foreign, readable.to_vec()),
        Operation::set_data(&foreign, []),
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

#[cfg(test)]
#[path = "../../tests/unit/sole_writer.rs"]
mod tests;
