//! What clients ask of servers.

use zookeeper_recipes_core::ensemble::{Acl, CreateMode, Operation};

use super::watch_kind::WatchKind;
use crate::record::request_kind::RequestKind;

/// A request, as it travels.
#[derive(Clone, Debug)]
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
            Request::SetWatches { .. } | Request::Ping | Request::CloseSession => Vec::new(),
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
            Request::Create { path, data, .. } => path.len() + data.len() + 16,
            Request::Transact(operations) => operations.iter().map(operation_size).sum(),
            Request::GetEach(paths) => of_paths(paths),
            Request::SetWatches {
                data,
                exists,
                children,
                ..
            } => of_paths(data) + of_paths(exists) + of_paths(children),
            _ => 0,
        }
    }

    /// What it asks the leader to write.
    pub(crate) fn operations(self) -> Option<(Vec<Operation>, bool)> {
        match self {
            Request::Create {
                path,
                data,
                mode,
                acl,
            } => Some((
                vec![Operation::Create {
                    path,
                    data,
                    mode,
                    acl,
                }],
                false,
            )),
            Request::Delete { path } => Some((
                vec![Operation::Delete {
                    path,
                    version: None,
                }],
                false,
            )),
            Request::Transact(operations) => Some((operations, true)),
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
                let operations: Vec<String> = operations.iter().map(operation_text).collect();
                format!("transact {{ {} }}", operations.join("; "))
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

fn operation_size(operation: &Operation) -> usize {
    let data = match operation {
        Operation::Create { data, .. } | Operation::SetData { data, .. } => data.len(),
        Operation::Check { .. } | Operation::Delete { .. } => 0,
    };
    operation_path(operation).len() + data + 16
}

fn operation_text(operation: &Operation) -> String {
    match operation {
        Operation::Check {
            path,
            version: None,
        } => format!("check {path}"),
        Operation::Check {
            path,
            version: Some(version),
        } => format!("check {path} at {version}"),
        Operation::Create { path, mode, .. } => format!("create {path} {mode:?}"),
        Operation::SetData { path, .. } => format!("set {path}"),
        Operation::Delete { path, .. } => format!("delete {path}"),
    }
}
