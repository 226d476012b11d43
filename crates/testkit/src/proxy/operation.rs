//! The kinds of request in ZooKeeper's protocol.

use std::fmt;

/// A kind of request, or a notification.
///
/// The variants of one request that differ only in what the reply holds count as one: `create`,
/// `create2`, `createContainer` and `createTTL` are all [`Create`](Self::Create).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Operation {
    /// The handshake that opens a session, or takes it to another connection.
    Connect,
    /// A create.
    Create,
    /// A delete.
    Delete,
    /// An exists, with or without a watch.
    Exists,
    /// A read of data, with or without a watch.
    GetData,
    /// A write of data.
    SetData,
    /// A read of an access control list.
    GetAcl,
    /// A write of an access control list.
    SetAcl,
    /// A list of children, with or without a watch.
    GetChildren,
    /// A sync.
    Sync,
    /// A transaction: several writes and conditions.
    Multi,
    /// Several reads in one request.
    MultiRead,
    /// A watch added by itself.
    AddWatch,
    /// A watch taken off.
    RemoveWatches,
    /// The watches of a session, set again after a reconnect.
    SetWatches,
    /// Credentials, of either scheme.
    Auth,
    /// A ping.
    Ping,
    /// The end of a session, asked for by its client.
    CloseSession,
    /// An event of a watch: no request, but sent by the server of its own accord.
    Notification,
    /// Any other, by its number in the protocol.
    Other(i32),
}

impl Operation {
    pub(super) fn from_code(code: i32) -> Operation {
        match code {
            1 | 15 | 19 | 21 => Operation::Create,
            2 | 20 => Operation::Delete,
            3 => Operation::Exists,
            4 => Operation::GetData,
            5 => Operation::SetData,
            6 => Operation::GetAcl,
            7 => Operation::SetAcl,
            8 | 12 => Operation::GetChildren,
            9 => Operation::Sync,
            11 => Operation::Ping,
            14 => Operation::Multi,
            17 | 18 => Operation::RemoveWatches,
            22 => Operation::MultiRead,
            100 | 102 => Operation::Auth,
            101 | 105 => Operation::SetWatches,
            106 => Operation::AddWatch,
            -11 => Operation::CloseSession,
            other => Operation::Other(other),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}
