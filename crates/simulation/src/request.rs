//! What clients and servers say to each other.

use zookeeper_recipes_core::ensemble::{
    Acl, CreateMode, Created, Event, Operation, Outcome, SessionEnd, Stat, TransactionError,
};
use zookeeper_recipes_core::{Refusal, ServerError};

use super::counters::RequestKind;
use super::watches::WatchKind;

/// A request, as it travels.
#[derive(Clone, Debug)]
pub(super) enum Request {
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
    pub(super) fn kind(&self) -> RequestKind {
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

    pub(super) fn paths(&self) -> Vec<&str> {
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
    pub(super) fn watch(&self) -> Option<(&str, WatchKind)> {
        match self {
            Request::List { path, watch: true } => Some((path, WatchKind::Children)),
            Request::Get { path, watch: true } | Request::Exists { path } => {
                Some((path, WatchKind::Data))
            }
            _ => None,
        }
    }

    /// About how many bytes it has on the wire.
    pub(super) fn size(&self) -> usize {
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
    pub(super) fn operations(self) -> Option<(Vec<Operation>, bool)> {
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

    pub(super) fn text(&self) -> String {
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

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    Created(Created),
    Children(Vec<String>),
    Data(Vec<u8>, Stat),
    Exists(Option<Stat>),
    Outcomes(Vec<Outcome>),
    Each(Vec<Option<(Vec<u8>, Stat)>>),
}

impl Answer {
    pub(super) fn text(&self) -> String {
        match self {
            Answer::Done => "done".to_owned(),
            Answer::Created(created) => {
                format!("created {} at {:#x}", created.path, created.stat.czxid)
            }
            Answer::Children(names) => format!("{} children {names:?}", names.len()),
            Answer::Data(data, stat) => format!("{} bytes at {:#x}", data.len(), stat.mzxid),
            Answer::Exists(Some(stat)) => format!("exists at {:#x}", stat.mzxid),
            Answer::Exists(None) => "no such znode".to_owned(),
            Answer::Outcomes(outcomes) => format!("{} operations done", outcomes.len()),
            Answer::Each(nodes) => {
                format!(
                    "{} of {} there",
                    nodes.iter().flatten().count(),
                    nodes.len()
                )
            }
        }
    }
}

/// Why a server did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Refused {
        operation: Option<usize>,
        refusal: Refusal,
    },
    /// The session is over.
    SessionExpired,
    /// The session has gone to another server: this connection is no longer its own.
    SessionMoved,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused {
            operation: None,
            refusal,
        }
    }
}

/// From a client to a server, on one connection, in order.
#[derive(Debug)]
pub(super) enum Upward {
    /// The first word: a new session, or one that goes on.
    Connect {
        session: Option<i64>,
        seen: i64,
    },
    Request(Arriving),
    /// The client has closed the connection.
    Close,
}

/// A request as a server gets it, with what is to happen to its reply.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) id: u64,
    pub(super) request: Request,
    pub(super) lose_reply: bool,
    pub(super) delay_reply: std::time::Duration,
    pub(super) expire: bool,
    pub(super) throttled: bool,
    /// For how long the server is cut off from the others once it has answered.
    pub(super) cut_off: Option<std::time::Duration>,
}

impl Arriving {
    /// Whether it takes nobody but the server that it comes to.
    pub(super) fn is_settled_here(&self) -> bool {
        self.throttled || !self.request.kind().goes_through_the_leader()
    }
}

/// From a server to a client, on one connection, in order.
#[derive(Debug)]
pub(super) enum Downward {
    Connected {
        session: i64,
        timeout: std::time::Duration,
    },
    /// There is no such session any more.
    Expired,
    Reply {
        id: u64,
        zxid: i64,
        result: Result<Answer, Failure>,
    },
    Event {
        path: String,
        event: Event,
    },
    /// The server has closed the connection.
    Close,
}

/// The refusal of a request, for the caller of the seam.
pub(super) fn refused(operation: Option<usize>, refusal: Refusal) -> TransactionError {
    TransactionError {
        operation,
        error: ServerError::Refused(refusal),
    }
}

/// The end of the session before an answer came, for the caller of the seam.
pub(super) fn session_over(end: SessionEnd) -> TransactionError {
    TransactionError {
        operation: None,
        error: ServerError::SessionOver(end),
    }
}

/// A broken connection, for the caller of the seam.
pub(super) fn outcome_unknown(cause: &str) -> TransactionError {
    TransactionError {
        operation: None,
        error: ServerError::outcome_unknown(cause),
    }
}
