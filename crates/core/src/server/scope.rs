//! What a session may ask for, and where on the server that is.

use crate::path::problem_at_server;
use crate::server::ensemble::{Acl, Created, Operation, Stat};
use crate::server::error::Refusal;
use crate::server::request_limit::RequestLimit;

/// The part of the tree that a session sees, and the requests that it does not send.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Empty if there is none.
    chroot: String,
    /// True if the session has no identity but the library's own.
    is_anonymous: bool,
}

impl Scope {
    /// The part of the tree below `chroot`.
    ///
    /// `is_anonymous` is true if the user gave the session no identity.
    pub(crate) fn new(chroot: &str, is_anonymous: bool) -> Scope {
        let chroot = if chroot == "/" { "" } else { chroot };
        Scope {
            chroot: chroot.to_owned(),
            is_anonymous,
        }
    }

    pub(crate) fn limit(&self, bytes: usize) -> RequestLimit {
        RequestLimit::new(&self.chroot, bytes)
    }

    /// The path at the server. A sequential path may end with a slash.
    pub(crate) fn server_path(&self, path: &str, sequential: bool) -> Result<String, Refusal> {
        let problem = problem_at_server(path, sequential).filter(|_| path != "/");
        problem.map_or(Ok(()), |problem| Err(Refusal::BadArguments(problem)))?;
        Ok(match (self.chroot.as_str(), path) {
            ("", path) => path.to_owned(),
            (chroot, "/") => chroot.to_owned(),
            (chroot, path) => format!("{chroot}{path}"),
        })
    }

    /// The path at the server of a znode that is created or deleted, by the request `act`.
    pub(crate) fn path_below_root(
        &self,
        path: &str,
        sequential: bool,
        act: &str,
    ) -> Result<String, Refusal> {
        match path {
            "/" => Err(Refusal::BadArguments(format!("can not {act} root node"))),
            path => self.server_path(path, sequential),
        }
    }

    /// Refuses an access control list that would let nobody use the znode.
    ///
    /// The scheme `auth` means the identities of the session. The library's own identity would
    /// make the server accept it, but no later session can show that identity.
    pub(crate) fn check_acl(&self, acl: &[Acl]) -> Result<(), Refusal> {
        let by_creator = |entry: &Acl| &*entry.id.scheme == "auth";
        match acl.iter().any(by_creator) {
            true if self.is_anonymous => Err(Refusal::NoCredentials),
            false if acl.is_empty() => Err(Refusal::InvalidAcl),
            _ => Ok(()),
        }
    }

    /// The znode that was created at this path at the server.
    pub(crate) fn created(&self, path: String, stat: Stat) -> Created {
        let path = path.strip_prefix(&self.chroot).unwrap_or(&path).to_owned();
        Created { path, stat }
    }

    /// The operation with its path at the server.
    pub(crate) fn operation(&self, operation: &Operation) -> Result<Operation, Refusal> {
        let server_path = match operation {
            Operation::Check { path, .. } | Operation::SetData { path, .. } => {
                self.server_path(path, false)?
            }
            Operation::Create {
                path, mode, acl, ..
            } => {
                self.check_acl(acl)?;
                self.server_path(path, mode.is_sequential())?
            }
            Operation::Delete { path, .. } => self.path_below_root(path, false, "delete")?,
        };
        let mut operation = operation.clone();
        *operation.path_mut() = server_path;
        Ok(operation)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/scope.rs"]
mod tests;
