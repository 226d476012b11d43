//! The kinds of request, by which a simulation counts and breaks.

use zookeeper_recipes_protocol::OpCode;

/// The kinds of request that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestKind {
    /// A create.
    Create,
    /// A delete.
    Delete,
    /// A list of children (`getChildren`), with or without a watch.
    #[doc(alias = "getChildren")]
    List,
    /// A read of data (`getData`), with or without a watch.
    #[doc(alias = "getData")]
    Get,
    /// An exists.
    Exists,
    /// A transaction of several writes (`multi`).
    #[doc(alias = "multi")]
    Transact,
    /// A single write other than a create or a delete. Only clients over TCP send it.
    Write,
    /// A read of several znodes.
    GetEach,
    /// A sync.
    Sync,
    /// The removal of a watch.
    RemoveWatch,
    /// The watches of a session, restored after a reconnect.
    SetWatches,
    /// A sign of life of an idle client.
    Ping,
    /// The end of a session, at its client's request.
    CloseSession,
    /// The credentials of a client, on each connection.
    Authenticate,
    /// A request of another kind, such as the watch of a tree.
    Other,
}

impl RequestKind {
    /// The kind of a request with this number.
    pub(crate) fn of(opcode: OpCode) -> RequestKind {
        match opcode {
            OpCode::Create | OpCode::Create2 | OpCode::CreateContainer => RequestKind::Create,
            OpCode::Delete => RequestKind::Delete,
            OpCode::GetChildren | OpCode::GetChildren2 => RequestKind::List,
            OpCode::GetData => RequestKind::Get,
            OpCode::Exists => RequestKind::Exists,
            OpCode::Multi => RequestKind::Transact,
            OpCode::CreateTtl
            | OpCode::SetData
            | OpCode::SetAcl
            | OpCode::Check
            | OpCode::Reconfig => RequestKind::Write,
            OpCode::MultiRead => RequestKind::GetEach,
            OpCode::Sync => RequestKind::Sync,
            OpCode::RemoveWatches => RequestKind::RemoveWatch,
            OpCode::SetWatches | OpCode::SetWatches2 => RequestKind::SetWatches,
            OpCode::Ping => RequestKind::Ping,
            OpCode::CloseSession => RequestKind::CloseSession,
            OpCode::Auth | OpCode::Sasl => RequestKind::Authenticate,
            _ => RequestKind::Other,
        }
    }

    /// True if a caller asks for this request, and false if the client sends it by itself.
    pub fn is_asked_for(self) -> bool {
        !matches!(
            self,
            RequestKind::RemoveWatch
                | RequestKind::SetWatches
                | RequestKind::Ping
                | RequestKind::CloseSession
                | RequestKind::Authenticate
        )
    }

    /// True if a server needs the leader to answer this.
    pub(crate) fn goes_through_the_leader(self) -> bool {
        self.is_write() || matches!(self, RequestKind::Sync | RequestKind::CloseSession)
    }

    /// True if this changes the tree.
    pub fn is_write(self) -> bool {
        matches!(
            self,
            RequestKind::Create | RequestKind::Delete | RequestKind::Transact | RequestKind::Write
        )
    }
}
