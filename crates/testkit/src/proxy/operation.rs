//! The kinds of request in ZooKeeper's protocol.

use std::fmt;

use zookeeper_recipes_protocol::OpCode;

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

impl From<OpCode> for Operation {
    fn from(opcode: OpCode) -> Operation {
        match opcode {
            OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
                Operation::Create
            }
            OpCode::Delete | OpCode::DeleteContainer => Operation::Delete,
            OpCode::Exists => Operation::Exists,
            OpCode::GetData => Operation::GetData,
            OpCode::SetData => Operation::SetData,
            OpCode::GetAcl => Operation::GetAcl,
            OpCode::SetAcl => Operation::SetAcl,
            OpCode::GetChildren | OpCode::GetChildren2 => Operation::GetChildren,
            OpCode::Sync => Operation::Sync,
            OpCode::Ping => Operation::Ping,
            OpCode::Multi => Operation::Multi,
            OpCode::MultiRead => Operation::MultiRead,
            OpCode::CheckWatches | OpCode::RemoveWatches => Operation::RemoveWatches,
            OpCode::Auth | OpCode::Sasl => Operation::Auth,
            OpCode::SetWatches | OpCode::SetWatches2 => Operation::SetWatches,
            OpCode::AddWatch => Operation::AddWatch,
            OpCode::CloseSession => Operation::CloseSession,
            other => Operation::Other(other.into()),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}
