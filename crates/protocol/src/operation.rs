//! The fields of each operation.

use crate::code::{AddWatchMode, CreateMode, WatcherType};
use crate::data::Acl;
use crate::jute::{operation_records, secret_records};

operation_records! {
    /// `create`, `create2` and `createContainer`.
    pub struct CreateRequest {
        /// The path, without a number at its end.
        pub path: String,
        /// The data. `None` is kept apart from empty data.
        pub data: Option<Vec<u8>>,
        /// The access control list.
        pub acl: Vec<Acl>,
        /// What kind of znode to create.
        pub mode: CreateMode,
    }

    /// `createTTL`.
    pub struct CreateTtlRequest {
        /// The path, without a number at its end.
        pub path: String,
        /// The data. `None` is kept apart from empty data.
        pub data: Option<Vec<u8>>,
        /// The access control list.
        pub acl: Vec<Acl>,
        /// What kind of znode to create.
        pub mode: CreateMode,
        /// The time to live, in milliseconds.
        pub ttl: i64,
    }

    /// `delete`.
    pub struct DeleteRequest {
        /// The znode.
        pub path: String,
        /// The version that its data must have. -1 for any.
        pub version: i32,
    }

    /// `check`.
    pub struct CheckRequest {
        /// The znode.
        pub path: String,
        /// The version that its data must have. -1 for any.
        pub version: i32,
    }

    /// `exists`, `getData`, `getChildren` and `getChildren2`.
    pub struct ReadRequest {
        /// The znode.
        pub path: String,
        /// True to set a watch, too.
        pub watch: bool,
    }

    /// `getACL`, `sync` and `getAllChildrenNumber`.
    pub struct PathRequest {
        /// The znode.
        pub path: String,
    }

    /// `setData`.
    pub struct SetDataRequest {
        /// The znode.
        pub path: String,
        /// The data. `None` is kept apart from empty data.
        pub data: Option<Vec<u8>>,
        /// The version that the data must have. -1 for any.
        pub version: i32,
    }

    /// `setACL`.
    pub struct SetAclRequest {
        /// The znode.
        pub path: String,
        /// The access control list.
        pub acl: Vec<Acl>,
        /// The version that the ACL must have. -1 for any.
        pub version: i32,
    }

    /// `setWatches`.
    #[derive(Default)]
    pub struct SetWatchesRequest {
        /// The latest zxid that the client has seen. Watches of what has changed since fire.
        pub relative_zxid: i64,
        /// Paths with a watch of data.
        pub data_watches: Vec<String>,
        /// Paths with a watch of existence.
        pub exist_watches: Vec<String>,
        /// Paths with a watch of children.
        pub child_watches: Vec<String>,
    }

    /// `setWatches2`.
    pub struct SetWatches2Request {
        /// The latest zxid that the client has seen. Watches of what has changed since fire.
        pub relative_zxid: i64,
        /// Paths with a watch of data.
        pub data_watches: Vec<String>,
        /// Paths with a watch of existence.
        pub exist_watches: Vec<String>,
        /// Paths with a watch of children.
        pub child_watches: Vec<String>,
        /// Paths with a persistent watch.
        pub persistent_watches: Vec<String>,
        /// Paths with a persistent recursive watch.
        pub persistent_recursive_watches: Vec<String>,
    }

    /// `addWatch`.
    pub struct AddWatchRequest {
        /// The znode.
        pub path: String,
        /// What kind of watch to add.
        pub mode: AddWatchMode,
    }

    /// `checkWatches` and `removeWatches`.
    pub struct WatchesRequest {
        /// The znode.
        pub path: String,
        /// Which of its watches.
        pub kind: WatcherType,
    }

    /// `getEphemerals`.
    pub struct GetEphemeralsRequest {
        /// What the paths begin with. `None` for all paths.
        pub prefix: Option<String>,
    }

    /// `reconfig`.
    pub struct ReconfigRequest {
        /// The servers that join.
        pub joining_servers: Option<String>,
        /// The servers that leave.
        pub leaving_servers: Option<String>,
        /// All servers, in place of the servers that join and leave.
        pub new_members: Option<String>,
        /// The version that the configuration must have. -1 for any.
        pub current_config_id: i64,
    }
}

secret_records! {
    /// `auth`.
    pub struct AuthRequest {
        /// Always 0.
        pub kind: i32,
        /// The scheme: `digest`, for example.
        pub scheme: String,
        /// The credentials, as the scheme has them.
        pub auth: Option<Vec<u8>>,
    } shows { kind scheme }

    /// `sasl`.
    pub struct SaslRequest {
        /// The token of the exchange.
        pub token: Option<Vec<u8>>,
    } shows {}

    /// The reply to `sasl`.
    pub struct SaslResponse {
        /// The token of the exchange.
        pub token: Option<Vec<u8>>,
    } shows {}
}
