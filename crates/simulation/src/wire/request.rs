//! The requests of clients.

use zookeeper_recipes_core::ensemble::AuthId;

use super::read::Read;
use super::write::Write;
use crate::record::request_kind::RequestKind;

/// A request, as it travels.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Sync {
        path: String,
    },
    Ping,
    CloseSession,
    /// A single write, answered with the metadata that it leaves.
    Write(Write),
    /// Several writes in one transaction.
    WriteAll(Vec<Write>),
    /// A read, or a change of the client's watches.
    Read(Read),
    /// The client shows who it is, or with none fails to.
    Authenticate(Option<AuthId>),
    /// A change of the ensemble's members, which is not enabled.
    Reconfigure,
    /// A request of a type that the server does not know.
    Unknown,
}

impl Request {
    pub(crate) fn kind(&self) -> RequestKind {
        match self {
            Request::Sync { .. } => RequestKind::Sync,
            Request::Ping => RequestKind::Ping,
            Request::CloseSession => RequestKind::CloseSession,
            Request::Write(write) => write.kind(),
            Request::WriteAll(_) => RequestKind::Transact,
            Request::Read(read) => read.kind(),
            Request::Reconfigure => RequestKind::Write,
            Request::Authenticate(_) => RequestKind::Authenticate,
            Request::Unknown => RequestKind::Other,
        }
    }

    pub(crate) fn paths(&self) -> Vec<&str> {
        match self {
            Request::Sync { path } => vec![path],
            Request::Write(write) => vec![write.path()],
            Request::WriteAll(writes) => writes.iter().map(Write::path).collect(),
            Request::Read(read) => read.paths(),
            Request::Ping
            | Request::CloseSession
            | Request::Authenticate(_)
            | Request::Reconfigure
            | Request::Unknown => Vec::new(),
        }
    }

    /// About how many bytes it has on the wire.
    pub(crate) fn size(&self) -> usize {
        match self {
            Request::Write(write) => write.size(),
            Request::WriteAll(writes) => writes.iter().map(Write::size).sum(),
            _ => self.paths().into_iter().map(|path| path.len() + 4).sum(),
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Request::Sync { path } => format!("sync {path}"),
            Request::Ping => "ping".to_owned(),
            Request::CloseSession => "close session".to_owned(),
            Request::Write(write) => write.text(),
            Request::WriteAll(writes) => {
                let writes: Vec<String> = writes.iter().map(Write::text).collect();
                format!("transact {{ {} }}", writes.join("; "))
            }
            Request::Read(read) => read.text(),
            Request::Authenticate(_) => "authenticate".to_owned(),
            Request::Reconfigure => "reconfigure".to_owned(),
            Request::Unknown => "a request of an unknown type".to_owned(),
        }
    }
}
