//! What requests and replies are made of.

use std::fmt;
use std::ops::{BitAnd, BitOr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1_smol::Sha1;

use crate::error::DecodeError;
use crate::jute::{Input, Output, Record, records};

records! {
    /// The metadata of a znode.
    #[derive(Copy, Default)]
    pub struct Stat {
        /// The zxid of the create.
        pub czxid: i64,
        /// The zxid of the last write of the data.
        pub mzxid: i64,
        /// The time of the create, in milliseconds since 1970.
        pub ctime: i64,
        /// The time of the last write of the data, in milliseconds since 1970.
        pub mtime: i64,
        /// How often the data was written.
        pub version: i32,
        /// How often a child was created or deleted.
        pub cversion: i32,
        /// How often the ACL was written.
        pub aversion: i32,
        /// The session of an ephemeral znode. 0 for all other znodes.
        pub ephemeral_owner: i64,
        /// The length of the data.
        pub data_length: i32,
        /// How many children the znode has.
        pub num_children: i32,
        /// The zxid of the last create or delete of a child.
        pub pzxid: i64,
    }

    /// An entry of an access control list: one identity and its permissions.
    pub struct Acl {
        /// What the entry permits.
        pub permissions: Permission,
        /// Who has these permissions.
        pub id: AuthId,
    }

    /// One identity of a client, in the reply to `whoAmI`.
    pub struct ClientInfo {
        /// The scheme of authentication.
        pub auth_scheme: String,
        /// The name in this scheme.
        pub user: String,
    }
}

/// The identity of a client at a server, such as a user and a digest. Cheap to clone.
///
/// `Debug` leaves out the digest of the scheme `digest`, because a password can be guessed by it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AuthId {
    /// The scheme of authentication: `world`, `auth`, `digest`, `ip`, `x509`, `sasl`.
    pub scheme: Arc<str>,
    /// The identity in this scheme. Empty in the scheme `auth`, for which some clients send none.
    ///
    /// In the scheme `x509` it is the subject of the client's certificate as RFC 2253 writes it, the
    /// last part first: `CN=node-7,O=Example,C=DE`.
    pub id: Arc<str>,
}

impl AuthId {
    /// The identity `id` in the authentication scheme `scheme`.
    pub fn new(scheme: &str, id: &str) -> AuthId {
        AuthId {
            scheme: scheme.into(),
            id: id.into(),
        }
    }

    /// The identity that all clients have.
    pub fn anyone() -> AuthId {
        AuthId::new("world", "anyone")
    }

    /// The identity of a user of the scheme `digest`, for an access control list.
    ///
    /// A client with the credentials `user:password` of the scheme `digest` has it. The id is the
    /// user and the digest of both, by ZooKeeper's default algorithm, so the password is not in it.
    /// A user that contains a colon is another user: ZooKeeper ends the name at the first colon.
    ///
    /// ```
    /// # use zookeeper_recipes_protocol::AuthId;
    ///
    /// let reader = AuthId::digest("super", "admin");
    /// assert_eq!(&*reader.id, "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
    /// ```
    pub fn digest(user: &str, password: &str) -> AuthId {
        let digest = Sha1::from(format!("{user}:{password}")).digest().bytes();
        AuthId::new("digest", &format!("{user}:{}", STANDARD.encode(digest)))
    }

    /// The identities of the session that sets the access control list.
    ///
    /// A session without credentials has no identity that a later session could show. The server
    /// refuses its create with [`ErrorCode::InvalidAcl`](crate::ErrorCode::InvalidAcl). Give it
    /// credentials, or a client certificate.
    pub fn authed() -> AuthId {
        AuthId::new("auth", "")
    }
}

impl fmt::Debug for AuthId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("AuthId");
        shown.field("scheme", &self.scheme);
        match self.id.split_once(':') {
            Some((user, _)) if &*self.scheme == "digest" => {
                shown.field("user", &user).finish_non_exhaustive()
            }
            _ => shown.field("id", &self.id).finish(),
        }
    }
}

/// A missing identity is read as an empty one.
impl Record for AuthId {
    const SMALLEST: usize = 8;

    fn encode(&self, to: &mut Output<'_>) {
        self.scheme.encode(to);
        self.id.encode(to);
    }

    fn decode(from: &mut Input<'_>) -> Result<AuthId, DecodeError> {
        let scheme = Record::decode(from)?;
        let id: Option<String> = Record::decode(from)?;
        let id = id.unwrap_or_default().into();
        Ok(AuthId { scheme, id })
    }
}

impl Acl {
    /// An entry that gives these permissions to all clients with the identity `id`.
    pub fn new(permissions: Permission, id: AuthId) -> Acl {
        Acl { permissions, id }
    }
}

impl Stat {
    /// When the znode was created, by the clock of the server that led then.
    ///
    /// A time before 1970 is returned as the beginning of 1970. A time after the year 9999 is
    /// returned as the end of that year, because not every system has a value for it.
    pub fn created(&self) -> SystemTime {
        const LATEST: u64 = 253_402_300_799_999;
        let milliseconds = u64::try_from(self.ctime).unwrap_or_default();
        UNIX_EPOCH + Duration::from_millis(milliseconds.min(LATEST))
    }

    /// True if the server did not send the metadata.
    ///
    /// Some servers leave it out of the reply to a transaction
    /// ([ZOOKEEPER-4026](https://issues.apache.org/jira/browse/ZOOKEEPER-4026)).
    pub fn is_invalid(&self) -> bool {
        self.czxid == -1
    }
}

/// The operations that an entry of an access control list permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permission(i32);

impl Permission {
    /// Permits to read the data and to list the children.
    pub const READ: Permission = Permission(1);
    /// Permits to set the data.
    pub const WRITE: Permission = Permission(1 << 1);
    /// Permits to create a child.
    pub const CREATE: Permission = Permission(1 << 2);
    /// Permits to delete a child.
    pub const DELETE: Permission = Permission(1 << 3);
    /// Permits to set the access control list.
    pub const ADMIN: Permission = Permission(1 << 4);
    /// Permits all operations.
    pub const ALL: Permission = Permission(31);
    /// Permits no operation.
    pub const NONE: Permission = Permission(0);

    /// True if this includes all permissions of `other`.
    pub fn has(self, other: Permission) -> bool {
        self & other == other
    }

    /// The bits of the permission in the protocol.
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

impl Record for Permission {
    const SMALLEST: usize = 4;

    fn encode(&self, to: &mut Output<'_>) {
        self.0.encode(to);
    }

    fn decode(from: &mut Input<'_>) -> Result<Permission, DecodeError> {
        Record::decode(from).map(Permission)
    }
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

#[cfg(test)]
#[path = "../tests/unit/data.rs"]
mod tests;
