//! What a session may ask for, and where on the server that is.

use crate::server::ensemble::{Acl, AuthId, Created, Operation};
use crate::server::error::Refusal;
use crate::server::request_limit::RequestLimit;

/// The part of the tree that a session sees, and the requests that it does not send.
///
/// An implementation of [`ServerSession`](crate::ensemble::ServerSession) uses it.
#[derive(Debug)]
pub struct Scope {
    /// Empty if there is none.
    chroot: String,
    /// True if the session has no identity but the library's own.
    is_anonymous: bool,
}

impl Scope {
    /// The part of the tree below `chroot`.
    ///
    /// `is_anonymous` is true if the user gave the session no identity.
    pub fn new(chroot: &str, is_anonymous: bool) -> Scope {
        let chroot = if chroot == "/" { "" } else { chroot };
        Scope {
            chroot: chroot.to_owned(),
            is_anonymous,
        }
    }

    /// The limit of servers with this `jute.maxbuffer`.
    pub(crate) fn limit(&self, bytes: usize) -> RequestLimit {
        RequestLimit::new(&self.chroot, bytes)
    }

    /// The path at the server.
    ///
    /// A sequential path may end with a slash, because the server appends a number.
    ///
    /// # Errors
    ///
    /// [`Refusal::BadArguments`] if the path is not well formed.
    pub fn server_path(&self, path: &str, sequential: bool) -> Result<String, Refusal> {
        check_path(path, sequential)?;
        Ok(match (self.chroot.as_str(), path) {
            ("", path) => path.to_owned(),
            (chroot, "/") => chroot.to_owned(),
            (chroot, path) => format!("{chroot}{path}"),
        })
    }

    /// The path at the server of a znode that is created or deleted.
    ///
    /// # Errors
    ///
    /// [`Refusal::BadArguments`] if the path is not well formed, or is the root. `act` names the
    /// request.
    pub fn path_below_root(
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
    ///
    /// # Errors
    ///
    /// [`Refusal::InvalidAcl`].
    pub fn check_acl(&self, acl: &[Acl]) -> Result<(), Refusal> {
        let by_creator = |entry: &Acl| entry.id.scheme == AuthId::authed().scheme;
        match acl.is_empty() || (self.is_anonymous && acl.iter().any(by_creator)) {
            true => Err(Refusal::InvalidAcl),
            false => Ok(()),
        }
    }

    /// The created znode, at its path below the chroot.
    pub fn client_path(&self, created: Created) -> Created {
        match created.path.strip_prefix(&self.chroot) {
            Some(path) if !self.chroot.is_empty() => Created {
                path: path.to_owned(),
                ..created
            },
            _ => created,
        }
    }

    /// The operation with its path at the server.
    ///
    /// # Errors
    ///
    /// Those of [`server_path`](Self::server_path) and [`check_acl`](Self::check_acl).
    pub fn operation(&self, operation: &Operation) -> Result<Operation, Refusal> {
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

/// Refuses a path that is not well formed.
fn check_path(path: &str, sequential: bool) -> Result<(), Refusal> {
    // Most paths are ASCII, and their bytes need no decoding.
    let is_printable = path.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let problem = if path.is_empty() {
        "path cannot be empty"
    } else if !path.starts_with('/') {
        "path must start with '/'"
    } else if path == "/" {
        return Ok(());
    } else if path.contains("//") {
        "empty node is not allowed in path"
    } else if path.ends_with('/') && !sequential {
        "path must not end with '/'"
    } else if path[1..].split('/').any(|segment| segment == "." || segment == "..") {
        "relative path is not allowed"
    } else if !is_printable && path.chars().any(|character| {
        matches!(character,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
    }) {
        "unsupported characters in path"
    } else {
        return Ok(());
    };
    Err(Refusal::BadArguments(problem.to_owned()))
}
