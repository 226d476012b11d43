//! Where the paths of a session are at the server, and what its requests may ask for.
//!
//! A server closes the connection at a request that is too long. The client would send it again
//! over each new connection, and no other request of the session would get through. So the
//! [connection](zookeeper_recipes_connection) measures each request, and does not send one that is
//! too long.

use std::mem::take;
use std::sync::Arc;

use zookeeper_recipes_connection::{RequestError, check_length};
use zookeeper_recipes_protocol::{Acl, AuthId, CreateMode, Operation, Permission, RequestBody};

use crate::invalid_input::InvalidInput;
use crate::path::problem_at_server;
use crate::server::error::{Refusal, ServerError, too_long};

/// The least limit: it leaves room for the requests that a session sends by itself.
///
/// The longest of them are the watches that the client sets after a reconnect, 128 KiB, and a
/// transaction with two paths, each of 64 KiB with its chroot.
pub(crate) const MIN_LIMIT: usize = 256 * 1024;

/// The part of the limit that the paths of one read may fill together.
const SHARE_OF_A_READ: usize = 2;

/// More than the bytes of a read beside its path, or of credentials beside their text.
pub(crate) const OVERHEAD: usize = 64;

/// The chroot of a session, and what the servers accept of it.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Empty if there is none.
    chroot: Arc<str>,
    /// The largest request that the servers accept, in bytes.
    pub longest_request: usize,
    /// True if the session has no identity but its own.
    pub is_anonymous: bool,
}

impl Scope {
    /// The scope below this chroot.
    pub fn new(chroot: &str, longest_request: usize, is_anonymous: bool) -> Scope {
        Scope {
            chroot: chroot.trim_end_matches('/').into(),
            longest_request,
            is_anonymous,
        }
    }

    /// The bytes of the chroot, which are in front of each path at the server.
    pub(crate) fn chroot_length(&self) -> usize {
        self.chroot.len()
    }

    /// The path at the server. A sequential path may end with a slash.
    pub(crate) fn server_path(
        &self,
        path: impl AsRef<str> + Into<String>,
        sequential: bool,
    ) -> Result<String, ServerError> {
        let below = path.as_ref();
        let problem = problem_at_server(below, sequential).filter(|_| below != "/");
        problem.map_or(Ok(()), |problem| Err(bad(problem)))?;
        Ok(match (&*self.chroot, below) {
            ("", _) => path.into(),
            (chroot, "/") => chroot.to_owned(),
            (chroot, below) => [chroot, below].concat(),
        })
    }

    /// The operation with its path at the server, unless the server would refuse it.
    pub(crate) fn with_server_path(
        &self,
        mut operation: Operation,
    ) -> Result<Operation, ServerError> {
        let at_root = operation.path() == "/";
        let is_sequential = match &operation {
            Operation::Create2(_) | Operation::CreateContainer(_) | Operation::Delete(_)
                if at_root =>
            {
                return Err(bad("the root cannot be created or deleted".to_owned()));
            }
            Operation::Create2(create) | Operation::CreateContainer(create) => {
                self.check_acl(&create.acl)?;
                create.mode.is_sequential()
            }
            Operation::Delete(_) | Operation::Check(_) | Operation::SetData(_) => false,
            other => {
                let problem = format!("the operation of a transaction is {:?}", other.opcode());
                return Err(bad(problem));
            }
        };
        let path = take(operation.path_mut());
        *operation.path_mut() = self.server_path(path, is_sequential)?;
        Ok(operation)
    }

    /// Refuses an access control list that would let nobody use the znode.
    ///
    /// The scheme `auth` means the identities of the session. The library's own identity would
    /// make the server accept it, but no later session can show that identity.
    fn check_acl(&self, acl: &[Acl]) -> Result<(), ServerError> {
        let by_creator = |entry: &Acl| &*entry.id.scheme == "auth";
        if self.is_anonymous && acl.iter().any(by_creator) {
            return Err(ServerError::Refused(Refusal::NoCredentials));
        }
        match acl {
            [] => Err(ServerError::Refused(Refusal::InvalidAcl)),
            _ => Ok(()),
        }
    }

    /// Splits the paths of a read into requests that are not too long.
    ///
    /// If one path is too long, it is the only request, which then is refused.
    pub(crate) fn reads<'p>(&self, paths: &'p [String]) -> Vec<&'p [String]> {
        let length = |path: &String| self.chroot.len() + path.len() + OVERHEAD;
        if let Some(long) = paths
            .iter()
            .find(|path| length(path) > self.longest_request)
        {
            return vec![std::slice::from_ref(long)];
        }
        let most = self.longest_request / SHARE_OF_A_READ;
        // The bytes of the present request, if it has more than one path.
        let mut filled = 0;
        let fits = |path: &String, next: &String| {
            filled = filled.max(length(path)) + length(next);
            let fits = filled <= most;
            filled *= usize::from(fits);
            fits
        };
        paths.chunk_by(fits).collect()
    }

    /// Refuses a contender that nobody could use, or whose znode no request could create, or could
    /// replace by another.
    ///
    /// `name` is as long as the name of the znode in the directory `path`. The session may add an
    /// entry of its own to the access control list.
    pub(crate) fn check_contender(
        &self,
        path: &str,
        name: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<(), InvalidInput> {
        if acl.is_empty() {
            let problem = "is empty, so nobody could use the znode";
            return Err(InvalidInput::new("access control list", "[]", problem));
        }
        let path = format!("{}{path}/{name}", self.chroot);
        let own = Acl::new(Permission::ALL, AuthId::authed());
        let acl: Vec<Acl> = acl.iter().cloned().chain([own]).collect();
        let create = Operation::create(&*path, data, CreateMode::EphemeralSequential, acl);
        let replace = RequestBody::Multi(vec![Operation::delete(path), create]);
        match check_length(&replace, self.longest_request) {
            Err(RequestError::RequestTooLong { length, limit }) => Err(too_long(length, limit)),
            _ => Ok(()),
        }
    }
}

/// An access control list that permits everything to everyone, which is ZooKeeper's default.
pub(crate) fn open_acl() -> Vec<Acl> {
    vec![Acl::new(Permission::ALL, AuthId::anyone())]
}

fn bad(problem: String) -> ServerError {
    ServerError::Refused(Refusal::BadArguments(problem))
}

#[cfg(test)]
#[path = "../../tests/unit/scope.rs"]
mod tests;
