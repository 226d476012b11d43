//! What a session may ask for, and where on the server that is.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Created, Operation};

/// The part of the tree that a session sees, and what the client refuses to send for it.
#[derive(Debug)]
pub(super) struct Scope {
    /// Empty where there is none.
    chroot: String,
    /// Whether the session has no identity but its own, so that nobody else could show it.
    is_anonymous: bool,
}

impl Scope {
    pub(super) fn new(chroot: &str, is_anonymous: bool) -> Scope {
        let chroot = if chroot == "/" { "" } else { chroot };
        Scope {
            chroot: chroot.to_owned(),
            is_anonymous,
        }
    }

    /// The path on the server.
    pub(super) fn server_path(&self, path: &str, sequential: bool) -> Result<String, Refusal> {
        check_path(path, sequential)?;
        Ok(match (self.chroot.as_str(), path) {
            ("", path) => path.to_owned(),
            (chroot, "/") => chroot.to_owned(),
            (chroot, path) => format!("{chroot}{path}"),
        })
    }

    pub(super) fn is_valid(&self, acl: &[Acl]) -> bool {
        let by_creator = |entry: &Acl| entry.scheme() == AuthId::authed().scheme();
        let for_nobody = acl.is_empty() || (self.is_anonymous && acl.iter().any(by_creator));
        !for_nobody
    }

    /// The created znode, at its path below the chroot.
    pub(super) fn client_path(&self, created: Created) -> Created {
        match created.path.strip_prefix(&self.chroot) {
            Some(path) if !self.chroot.is_empty() => Created {
                path: path.to_owned(),
                ..created
            },
            _ => created,
        }
    }

    pub(super) fn prepare(&self, operation: &Operation) -> Result<Operation, Refusal> {
        Ok(match operation {
            Operation::Delete { path, .. } if path == "/" => return Err(no_root("delete")),
            Operation::Check { path, version } => Operation::Check {
                path: self.server_path(path, false)?,
                version: *version,
            },
            Operation::Create {
                path,
                data,
                mode,
                acl,
            } => {
                if !self.is_valid(acl) {
                    return Err(Refusal::InvalidAcl);
                }
                let path = self.server_path(path, is_sequential(*mode))?;
                Operation::Create {
                    path,
                    data: data.clone(),
                    mode: *mode,
                    acl: acl.clone(),
                }
            }
            Operation::SetData {
                path,
                data,
                version,
            } => Operation::SetData {
                path: self.server_path(path, false)?,
                data: data.clone(),
                version: *version,
            },
            Operation::Delete { path, version } => Operation::Delete {
                path: self.server_path(path, false)?,
                version: *version,
            },
        })
    }
}

pub(super) fn no_root(what: &str) -> Refusal {
    Refusal::BadArguments(format!("can not {what} root node"))
}

pub(super) fn is_sequential(mode: CreateMode) -> bool {
    matches!(
        mode,
        CreateMode::PersistentSequential | CreateMode::EphemeralSequential
    )
}

/// What the client refuses to send, in its words.
fn check_path(path: &str, sequential: bool) -> Result<(), Refusal> {
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
    } else if path.chars().any(|character| {
        matches!(character,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
    }) {
        "unsupported characters in path"
    } else {
        return Ok(());
    };
    Err(Refusal::BadArguments(problem.to_owned()))
}
