//! What clients ask of servers.

use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Operation};

use super::read::Read;
use super::watch_kind::WatchKind;
use super::write::{Write, acl_size, size_of};
use crate::record::request_kind::RequestKind;

/// A request, as it travels.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "embedded"),
    allow(dead_code, reason = "some requests come over TCP only")
)]
pub(crate) enum Request {
    Create {
        path: String,
        data: Vec<u8>,
        mode: CreateMode,
        acl: Vec<Acl>,
    },
    Delete {
        path: String,
    },
    List {
        path: String,
        watch: bool,
    },
    Get {
        path: String,
        watch: bool,
    },
    Exists {
        path: String,
    },
    Transact(Vec<Operation>),
    GetEach(Vec<String>),
    Sync {
        path: String,
    },
    RemoveWatch {
        path: String,
        kind: Option<WatchKind>,
    },
    SetWatches {
        zxid: i64,
        data: Vec<String>,
        exists: Vec<String>,
        children: Vec<String>,
    },
    Ping,
    CloseSession,
    /// A single write, answered with the metadata that it leaves.
    Write(Write),
    /// Several writes in one transaction.
    WriteAll(Vec<Write>),
    /// A read that comes over TCP only.
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
            Request::Create { .. } => RequestKind::Create,
            Request::Delete { .. } => RequestKind::Delete,
            Request::List { .. } => RequestKind::List,
            Request::Get { .. } => RequestKind::Get,
            Request::Exists { .. } => RequestKind::Exists,
            Request::Transact(_) => RequestKind::Transact,
            Request::GetEach(_) => RequestKind::GetEach,
            Request::Sync { .. } => RequestKind::Sync,
            Request::RemoveWatch { .. } => RequestKind::RemoveWatch,
            Request::SetWatches { .. } => RequestKind::SetWatches,
            Request::Ping => RequestKind::Ping,
            Request::CloseSession => RequestKind::CloseSession,
            Request::Write(write) => write.kind(),
            Request::WriteAll(_) => RequestKind::Transact,
            Request::Read(read) => read.kind(),
            Request::Reconfigure => RequestKind::Write,
            Request::Authenticate(_) | Request::Unknown => RequestKind::Other,
        }
    }

    pub(crate) fn paths(&self) -> Vec<&str> {
        match self {
            Request::Create { path, .. }
            | Request::Delete { path }
            | Request::List { path, .. }
            | Request::Get { path, .. }
            | Request::Exists { path }
            | Request::Sync { path }
            | Request::RemoveWatch { path, .. } => vec![path],
            Request::Transact(operations) => operations.iter().map(operation_path).collect(),
            Request::GetEach(paths) => paths.iter().map(String::as_str).collect(),
            Request::Write(write) => vec![write.path()],
            Request::WriteAll(writes) => writes.iter().map(Write::path).collect(),
            Request::Read(read) => read.paths(),
            Request::SetWatches { .. }
            | Request::Ping
            | Request::CloseSession
            | Request::Authenticate(_)
            | Request::Reconfigure
            | Request::Unknown => Vec::new(),
        }
    }

    /// The path and the kind of the watch that comes with it.
    pub(crate) fn watch(&self) -> Option<(&str, WatchKind)> {
        match self {
            Request::List { path, watch: true } => Some((path, WatchKind::Children)),
            Request::Get { path, watch: true } | Request::Exists { path } => {
                Some((path, WatchKind::Data))
            }
            _ => None,
        }
    }

    /// About how many bytes it has on the wire.
    pub(crate) fn size(&self) -> usize {
        let of_paths = |paths: &[String]| paths.iter().map(|path| path.len() + 4).sum();
        match self {
            Request::Create {
                path, data, acl, ..
            } => path.len() + data.len() + acl_size(acl) + 16,
            Request::Transact(operations) => operations.iter().map(size_of).sum(),
            Request::GetEach(paths) => of_paths(paths),
            Request::Write(write) => write.size(),
            Request::WriteAll(writes) => writes.iter().map(Write::size).sum(),
            Request::SetWatches {
                data,
                exists,
                children,
                ..
            } => of_paths(data) + of_paths(exists) + of_paths(children),
            _ => self.paths().into_iter().map(|path| path.len() + 4).sum(),
        }
    }

    /// What it asks the leader to write, and whether that is a transaction of several writes.
    pub(crate) fn writes(self) -> Option<(Vec<Write>, bool)> {
        let single = |operation: Operation| Some((vec![operation.into()], false));
        match self {
            Request::Create {
                path,
                data,
                mode,
                acl,
            } => single(Operation::Create {
                path,
                data,
                mode,
                acl,
            }),
            Request::Delete { path } => single(Operation::Delete {
                path,
                version: None,
            }),
            Request::Transact(operations) => {
                Some((operations.into_iter().map(Write::from).collect(), true))
            }
            Request::Write(write) => Some((vec![write], false)),
            Request::WriteAll(writes) => Some((writes, true)),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Request::Create {
                path, mode, data, ..
            } => {
                format!("create {path} {mode:?} ({} bytes)", data.len())
            }
            Request::Delete { path } => format!("delete {path}"),
            Request::List { path, watch } => format!("list {path}{}", watching(*watch)),
            Request::Get { path, watch } => format!("get {path}{}", watching(*watch)),
            Request::Exists { path } => format!("exists {path} and watch"),
            Request::Transact(operations) => {
                let operations = operations.iter().cloned().map(Write::from);
                let texts: Vec<String> = operations.map(|write| write.text()).collect();
                format!("transact {{ {} }}", texts.join("; "))
            }
            Request::GetEach(paths) => format!("get each of {}", paths.join(" ")),
            Request::Sync { path } => format!("sync {path}"),
            Request::RemoveWatch { path, kind: None } => format!("unwatch {path}"),
            Request::RemoveWatch {
                path,
                kind: Some(kind),
            } => format!("unwatch {path} {kind:?}"),
            Request::SetWatches {
                zxid,
                data,
                exists,
                children,
            } => format!(
                "watch anew since {zxid:#x}: data {data:?} exists {exists:?} children {children:?}"
            ),
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

fn watching(watch: bool) -> &'static str {
    if watch { " and watch" } else { "" }
}

fn operation_path(operation: &Operation) -> &str {
    match operation {
        Operation::Check { path, .. }
        | Operation::Create { path, .. }
        | Operation::SetData { path, .. }
        | Operation::Delete { path, .. } => path,
    }
}
