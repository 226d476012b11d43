//! The numbers of the protocol that have a meaning.

use std::fmt;

use crate::jute::codes;

codes! {
    /// What a request asks for: `ZooDefs.OpCode` in Apache's sources.
    pub enum OpCode {
        /// An event of a watch, which a server sends of its own accord.
        Notification = 0,
        /// `create`: answered with the path.
        Create = 1,
        /// `delete`.
        Delete = 2,
        /// `exists`.
        Exists = 3,
        /// `getData`.
        GetData = 4,
        /// `setData`.
        SetData = 5,
        /// `getACL`.
        GetAcl = 6,
        /// `setACL`.
        SetAcl = 7,
        /// `getChildren`: answered with the names.
        GetChildren = 8,
        /// `sync`.
        Sync = 9,
        /// `ping`.
        Ping = 11,
        /// `getChildren2`: answered with the names and the parent's stat.
        GetChildren2 = 12,
        /// `check`: a condition on a version.
        Check = 13,
        /// `multi`: a transaction of writes and conditions.
        Multi = 14,
        /// `create2`: answered with the path and the stat.
        Create2 = 15,
        /// `reconfig`.
        Reconfig = 16,
        /// `checkWatches`.
        CheckWatches = 17,
        /// `removeWatches`.
        RemoveWatches = 18,
        /// `createContainer`.
        CreateContainer = 19,
        /// `deleteContainer`: servers send it to each other.
        DeleteContainer = 20,
        /// `createTTL`.
        CreateTtl = 21,
        /// `multiRead`: several reads in one request.
        MultiRead = 22,
        /// `auth`: the credentials of one scheme.
        Auth = 100,
        /// `setWatches`: a session's watches, set again after a reconnect.
        SetWatches = 101,
        /// `sasl`: a token of a SASL exchange.
        Sasl = 102,
        /// `getEphemerals`.
        GetEphemerals = 103,
        /// `getAllChildrenNumber`.
        GetAllChildrenNumber = 104,
        /// `setWatches2`: `setWatches` with persistent watches.
        SetWatches2 = 105,
        /// `addWatch`: a persistent watch.
        AddWatch = 106,
        /// `whoAmI`.
        WhoAmI = 107,
        /// `createSession`: servers send it to each other.
        CreateSession = -10,
        /// `closeSession`.
        CloseSession = -11,
        /// `error`: a failed operation in the reply to a transaction.
        Error = -1,
    }

    /// How a server answers: `KeeperException.Code` in Apache's sources.
    pub enum ErrorCode {
        /// No error.
        Ok = 0,
        /// An error of the server.
        SystemError = -1,
        /// The server found its own state inconsistent.
        RuntimeInconsistency = -2,
        /// The server found its data inconsistent.
        DataInconsistency = -3,
        /// The request could not be decoded.
        MarshallingError = -5,
        /// The server does not know the operation.
        Unimplemented = -6,
        /// The operation took too long.
        OperationTimeout = -7,
        /// The request has an invalid path, mode or number.
        BadArguments = -8,
        /// The server does not know the session.
        UnknownSession = -12,
        /// The new configuration has no quorum that is connected and up to date.
        NewConfigNoQuorum = -13,
        /// Another reconfiguration is in progress.
        ReconfigInProgress = -14,
        /// The znode does not exist.
        NoNode = -101,
        /// The znode's ACL does not permit this.
        NoAuth = -102,
        /// The znode has another version.
        BadVersion = -103,
        /// Ephemeral znodes cannot have children.
        NoChildrenForEphemerals = -108,
        /// The znode exists.
        NodeExists = -110,
        /// The znode has children.
        NotEmpty = -111,
        /// The session has expired.
        SessionExpired = -112,
        /// The ACL is invalid.
        InvalidAcl = -114,
        /// The server does not accept the credentials.
        AuthFailed = -115,
        /// The session has moved to another server.
        SessionMoved = -118,
        /// The server only reads.
        NotReadOnly = -119,
        /// A local session cannot create ephemeral znodes.
        EphemeralOnLocalSession = -120,
        /// There is no such watch.
        NoWatcher = -121,
        /// The request took too long.
        RequestTimeout = -122,
        /// Reconfiguration is turned off.
        ReconfigDisabled = -123,
        /// The server requires SASL, and has closed the session.
        SessionClosedRequireSaslAuth = -124,
        /// The write would exceed a quota.
        QuotaExceeded = -125,
        /// The server has too much to do.
        ThrottledOp = -127,
    }

    /// What kind of znode a create makes.
    pub enum CreateMode {
        /// A znode that stays.
        Persistent = 0,
        /// A znode that its session's end deletes.
        Ephemeral = 1,
        /// A znode that stays, with a number at the end of its name.
        PersistentSequential = 2,
        /// A znode that its session's end deletes, with a number at the end of its name.
        EphemeralSequential = 3,
        /// A znode that the server deletes some time after its last child.
        Container = 4,
        /// A znode that the server deletes if it stays unmodified and without children.
        PersistentWithTtl = 5,
        /// The same, with a number at the end of its name.
        PersistentSequentialWithTtl = 6,
    }

    /// What kind of watch `addWatch` adds.
    pub enum AddWatchMode {
        /// A watch of a znode and its list of children. It stays when it fires.
        Persistent = 0,
        /// A watch of a znode and all below. It stays when it fires.
        PersistentRecursive = 1,
    }

    /// What kind of watch `checkWatches` and `removeWatches` are about.
    pub enum WatcherType {
        /// Watches of lists of children.
        Children = 1,
        /// Watches of data and existence.
        Data = 2,
        /// Watches of all kinds.
        Any = 3,
        /// Persistent watches, in servers since 3.9.
        Persistent = 4,
        /// Persistent recursive watches, in servers since 3.9.
        PersistentRecursive = 5,
    }

    /// What a watch has seen.
    pub enum EventType {
        /// Nothing at the znode: the state of the session has changed.
        None = -1,
        /// The znode was created.
        NodeCreated = 1,
        /// The znode was deleted.
        NodeDeleted = 2,
        /// The znode's data was written.
        NodeDataChanged = 3,
        /// A child was created or deleted.
        NodeChildrenChanged = 4,
        /// The watch of data was removed.
        DataWatchRemoved = 5,
        /// The watch of children was removed.
        ChildWatchRemoved = 6,
        /// The persistent watch was removed.
        PersistentWatchRemoved = 7,
    }

    /// The state of a session, in an event.
    pub enum KeeperState {
        /// Disconnected.
        Disconnected = 0,
        /// Connected: the state in each event that a server sends.
        SyncConnected = 3,
        /// The server did not accept the credentials.
        AuthFailed = 4,
        /// Connected to a server that only reads.
        ConnectedReadOnly = 5,
        /// Authenticated by SASL.
        SaslAuthenticated = 6,
        /// Closed by the client.
        Closed = 7,
        /// Expired.
        Expired = -112,
    }
}

impl CreateMode {
    /// True if the session's end deletes the znode.
    pub fn is_ephemeral(self) -> bool {
        matches!(
            self,
            CreateMode::Ephemeral | CreateMode::EphemeralSequential
        )
    }

    /// True if the server puts a number at the end of the name.
    pub fn is_sequential(self) -> bool {
        matches!(
            self,
            CreateMode::PersistentSequential
                | CreateMode::EphemeralSequential
                | CreateMode::PersistentSequentialWithTtl
        )
    }

    /// True if the znode is a container.
    pub fn is_container(self) -> bool {
        self == CreateMode::Container
    }

    /// True if the znode has a time to live.
    pub fn is_ttl(self) -> bool {
        matches!(
            self,
            CreateMode::PersistentWithTtl | CreateMode::PersistentSequentialWithTtl
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorCode::Unknown(code) => write!(formatter, "unknown error {code}"),
            known => write!(formatter, "{known:?} ({})", i32::from(*known)),
        }
    }
}
