//! The metadata type of znodes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The metadata of a znode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stat {
    /// The transaction that created the znode.
    pub czxid: i64,
    /// The transaction that last set its data.
    pub mzxid: i64,
    /// The transaction that last created or deleted a child.
    pub pzxid: i64,
    /// When the znode was created, in milliseconds since 1970.
    pub ctime: i64,
    /// When its data was last set, in milliseconds since 1970.
    pub mtime: i64,
    /// How often its data was set.
    pub version: i32,
    /// How often a child was created or deleted.
    pub cversion: i32,
    /// How often its access control list was set.
    pub aversion: i32,
    /// The session of an ephemeral znode. Zero for all other znodes.
    pub ephemeral_owner: i64,
    /// The length of its data in bytes.
    pub data_length: i32,
    /// The number of its children.
    pub num_children: i32,
}

impl Stat {
    /// When the znode was created, by the clock of the server that led then.
    pub fn created(&self) -> SystemTime {
        let milliseconds = u64::try_from(self.ctime).unwrap_or_default();
        UNIX_EPOCH + Duration::from_millis(milliseconds)
    }

    /// True if the server did not send the metadata.
    ///
    /// Some servers leave it out of the reply to a transaction
    /// ([ZOOKEEPER-4026](https://issues.apache.org/jira/browse/ZOOKEEPER-4026)).
    pub fn is_invalid(&self) -> bool {
        self.czxid == -1
    }
}
