//! Access control lists: the operations that each identity may do on a znode.

use std::borrow::Cow;
use std::fmt;
use std::ops::{BitAnd, BitOr};

/// The operations that an entry of an access control list permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permission(i32);

impl Permission {
    /// Permits to read the data and to list the children.
    pub const READ: Permission = Permission(1);
    /// Permits to set the data.
    pub const WRITE: Permission = Permission(2);
    /// Permits to create a child.
    pub const CREATE: Permission = Permission(4);
    /// Permits to delete a child.
    pub const DELETE: Permission = Permission(8);
    /// Permits to set the access control list.
    pub const ADMIN: Permission = Permission(16);
    /// Permits all operations.
    pub const ALL: Permission = Permission(31);
    /// Permits no operation.
    pub const NONE: Permission = Permission(0);

    /// True if this includes all permissions of `other`.
    pub fn has(self, other: Permission) -> bool {
        self & other == other
    }

    /// The bits of the permission in ZooKeeper's protocol.
    pub fn bits(self) -> i32 {
        self.0
    }

    /// Each permission with its name in ZooKeeper.
    const NAMES: [(Permission, &'static str); 5] = [
        (Permission::READ, "read"),
        (Permission::WRITE, "write"),
        (Permission::CREATE, "create"),
        (Permission::DELETE, "delete"),
        (Permission::ADMIN, "admin"),
    ];
}

impl BitAnd for Permission {
    type Output = Permission;

    fn bitand(self, other: Permission) -> Permission {
        Permission(self.0 & other.0)
    }
}

impl BitOr for Permission {
    type Output = Permission;

    fn bitor(self, other: Permission) -> Permission {
        Permission(self.0 | other.0)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Permission::NAMES.iter();
        let held = names.filter(|(permission, _)| self.has(*permission));
        let held: Vec<&str> = held.map(|(_, name)| *name).collect();
        match held.as_slice() {
            [] => formatter.write_str("nothing"),
            held => formatter.write_str(&held.join(", ")),
        }
    }
}

/// The identity of a client at a server, such as a user and a digest.
///
/// `Debug` leaves out the digest of the scheme `digest`, because a password can be guessed by it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AuthId {
    scheme: Cow<'static, str>,
    id: Cow<'static, str>,
}

impl AuthId {
    /// The identity `id` in the authentication scheme `scheme`.
    pub fn new(scheme: &str, id: &str) -> AuthId {
        AuthId {
            scheme: scheme.to_owned().into(),
            id: id.to_owned().into(),
        }
    }

    /// The identity that all clients have.
    pub const fn anyone() -> AuthId {
        AuthId {
            scheme: Cow::Borrowed("world"),
            id: Cow::Borrowed("anyone"),
        }
    }

    /// The identities of the session that sets the access control list.
    pub const fn authed() -> AuthId {
        AuthId {
            scheme: Cow::Borrowed("auth"),
            id: Cow::Borrowed(""),
        }
    }

    /// The authentication scheme of the identity.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The name of the identity in its scheme.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for AuthId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("AuthId");
        shown.field("scheme", &self.scheme);
        match self.id.split_once(':') {
            Some((user, _)) if self.scheme == "digest" => {
                shown.field("user", &user).finish_non_exhaustive()
            }
            _ => shown.field("id", &self.id).finish(),
        }
    }
}

/// An entry of an access control list: one identity and its permissions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acl {
    permission: Permission,
    auth_id: AuthId,
}

impl Acl {
    /// An entry that gives `permission` to all clients with the identity `auth_id`.
    pub fn new(permission: Permission, auth_id: AuthId) -> Acl {
        Acl {
            permission,
            auth_id,
        }
    }

    /// The permissions of the entry.
    pub fn permission(&self) -> Permission {
        self.permission
    }

    /// The identity of the entry.
    pub fn auth_id(&self) -> &AuthId {
        &self.auth_id
    }

    /// The authentication scheme of the entry's identity.
    pub fn scheme(&self) -> &str {
        self.auth_id.scheme()
    }

    /// The name of the entry's identity in its scheme.
    pub fn id(&self) -> &str {
        self.auth_id.id()
    }
}

/// An access control list that permits everything to everyone, which is ZooKeeper's default.
pub(crate) fn open_acl() -> Vec<Acl> {
    vec![Acl::new(Permission::ALL, AuthId::anyone())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_print_their_names() {
        assert_eq!(Permission::NONE.to_string(), "nothing");
        let some = Permission::READ | Permission::ADMIN;
        assert_eq!(some.to_string(), "read, admin");
        assert!(Permission::ALL.has(some));
        assert!(!some.has(Permission::WRITE));
    }

    #[test]
    fn digest_is_not_shown() {
        let shown = format!("{:?}", AuthId::new("digest", "me:secret"));
        assert!(shown.contains("me") && !shown.contains("secret"), "{shown}");
        let shown = format!("{:?}", AuthId::new("ip", "::1"));
        assert!(shown.contains("::1"), "{shown}");
    }
}
