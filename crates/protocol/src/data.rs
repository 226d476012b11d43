//! What requests and replies are made of.

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
        /// The session of an ephemeral znode. 0 for a persistent one.
        pub ephemeral_owner: i64,
        /// The length of the data.
        pub data_length: i32,
        /// How many children the znode has.
        pub num_children: i32,
        /// The zxid of the last create or delete of a child.
        pub pzxid: i64,
    }

    /// One entry of an access control list.
    pub struct Acl {
        /// The bits of [`permission`].
        pub permissions: i32,
        /// Who has these permissions.
        pub id: Id,
    }

    /// One identity of a client, in the reply to `whoAmI`.
    pub struct ClientInfo {
        /// The scheme of authentication.
        pub auth_scheme: String,
        /// The name in this scheme.
        pub user: String,
    }
}

/// Who an entry of an ACL is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    /// The scheme of authentication: `world`, `auth`, `digest`, `ip`, `x509`, `sasl`.
    pub scheme: String,
    /// The identity in this scheme. Empty in the scheme `auth`, for which some clients send none.
    pub id: String,
}

/// A missing identity is read as an empty one.
impl Record for Id {
    const SMALLEST: usize = 8;

    fn encode(&self, to: &mut Output<'_>) {
        self.scheme.encode(to);
        self.id.encode(to);
    }

    fn decode(from: &mut Input<'_>) -> Result<Id, DecodeError> {
        let scheme = Record::decode(from)?;
        let id: Option<String> = Record::decode(from)?;
        let id = id.unwrap_or_default();
        Ok(Id { scheme, id })
    }
}

/// The bits of [`Acl::permissions`].
pub mod permission {
    /// Read data and lists of children.
    pub const READ: i32 = 1;
    /// Write data.
    pub const WRITE: i32 = 1 << 1;
    /// Create children.
    pub const CREATE: i32 = 1 << 2;
    /// Delete children.
    pub const DELETE: i32 = 1 << 3;
    /// Read and write the ACL.
    pub const ADMIN: i32 = 1 << 4;
    /// All of them.
    pub const ALL: i32 = READ | WRITE | CREATE | DELETE | ADMIN;
}
