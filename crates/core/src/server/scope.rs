//! What a session may ask for, and where on the server that is.

use crate::path::problem_at_server;
use crate::server::ensemble::{Acl, OpenedSession, Operation};
use crate::server::error::{Refusal, ServerError};

impl OpenedSession {
    /// The path at the server. A sequential path may end with a slash.
    pub(crate) fn server_path(&self, path: &str, sequential: bool) -> Result<String, ServerError> {
        let problem = problem_at_server(path, sequential).filter(|_| path != "/");
        problem.map_or(Ok(()), |problem| Err(bad(problem)))?;
        Ok(match (&*self.limit.chroot, path) {
            ("", path) => path.to_owned(),
            (chroot, "/") => chroot.to_owned(),
            (chroot, path) => [chroot, path].concat(),
        })
    }

    /// The operation with its path at the server.
    pub(crate) fn operation(&self, mut operation: Operation) -> Result<Operation, ServerError> {
        let (is_sequential, act) = match &operation {
            Operation::Create2(create) | Operation::CreateContainer(create) => {
                self.check_acl(&create.acl)?;
                (create.mode.is_sequential(), Some("create"))
            }
            Operation::Delete(_) => (false, Some("delete")),
            Operation::Check(_) | Operation::SetData(_) => (false, None),
            other => {
                let problem = format!("the operation of a transaction is {:?}", other.opcode());
                return Err(bad(problem));
            }
        };
        if let ("/", Some(act)) = (operation.path(), act) {
            return Err(bad(format!("can not {act} root node")));
        }
        let path = self.server_path(operation.path(), is_sequential)?;
        *operation.path_mut() = path;
        Ok(operation)
    }

    /// Refuses an access control list that would let nobody use the znode.
    ///
    /// The scheme `auth` means the identities of the session. The library's own identity would
    /// make the server accept it, but no later session can show that identity.
    fn check_acl(&self, acl: &[Acl]) -> Result<(), ServerError> {
        let by_creator = |entry: &Acl| &*entry.id.scheme == "auth";
        match acl.iter().any(by_creator) {
            true if self.is_anonymous => Err(ServerError::Refused(Refusal::NoCredentials)),
            false if acl.is_empty() => Err(ServerError::Refused(Refusal::InvalidAcl)),
            _ => Ok(()),
        }
    }
}

fn bad(problem: String) -> ServerError {
    ServerError::Refused(Refusal::BadArguments(problem))
}

#[cfg(test)]
#[path = "../../tests/unit/scope.rs"]
mod tests;
