//! Reads, and changes of a client's watches.

use zookeeper_recipes_protocol::SetWatches2Request;

use crate::record::request_kind::RequestKind;

/// A read, or a change of the client's watches.
#[derive(Clone, Debug)]
pub(crate) enum Read {
    /// The metadata of a znode.
    Stat { path: String, watch: bool },
    /// The data of a znode, if it has any, with its metadata.
    Data { path: String, watch: bool },
    /// The names of a znode's children, with the znode's metadata.
    Children { path: String, watch: bool },
    /// The access control list of a znode, with the znode's metadata.
    Acl { path: String },
    /// How many znodes are below a znode, at any depth.
    CountBelow { path: String },
    /// The ephemeral znodes of the session, at paths that begin so.
    Ephemerals { prefix: String },
    /// What the client has authenticated as.
    Identities,
    /// Several reads, each with an answer of its own.
    Each(Vec<Read>),
    /// Sets a watch that stays when it has seen something.
    AddWatch(String, WatchMode),
    /// Takes off the watches of a kind, or with no kind both.
    RemoveWatches(String, Option<WatchKind>),
    /// Asks whether a watch of a kind exists, or without a kind one of either.
    CheckWatches(String, Option<WatchKind>),
    /// Sets the watches of a session that has come back.
    SetWatches(Box<SetWatches2Request>),
    /// A request whose content the server cannot read.
    Malformed,
}

/// The kind of change that a watch reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchKind {
    /// Set by a get or an exists: reports that a znode is created, changed or deleted.
    Data,
    /// Set by a list: reports that a znode's children change, or that the znode is deleted.
    Children,
}

/// How long a watch lasts, and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchMode {
    /// It fires once.
    Once,
    /// It stays when it has fired.
    Persistent,
    /// It stays, and also covers the znodes below its path.
    Recursive,
}

impl Read {
    pub(crate) fn kind(&self) -> RequestKind {
        match self {
            Read::Stat { .. } => RequestKind::Exists,
            Read::Data { .. } => RequestKind::Get,
            Read::Children { .. } => RequestKind::List,
            Read::Each(_) => RequestKind::GetEach,
            Read::RemoveWatches(..) => RequestKind::RemoveWatch,
            Read::SetWatches(_) => RequestKind::SetWatches,
            _ => RequestKind::Other,
        }
    }

    pub(crate) fn paths(&self) -> Vec<&str> {
        match self {
            Read::Stat { path, .. }
            | Read::Data { path, .. }
            | Read::Children { path, .. }
            | Read::Acl { path }
            | Read::CountBelow { path }
            | Read::AddWatch(path, _)
            | Read::RemoveWatches(path, _)
            | Read::CheckWatches(path, _) => vec![path],
            Read::Each(reads) => reads.iter().flat_map(Read::paths).collect(),
            Read::SetWatches(watches) => {
                let kinds = [
                    &watches.data_watches,
                    &watches.exist_watches,
                    &watches.child_watches,
                    &watches.persistent_watches,
                    &watches.persistent_recursive_watches,
                ];
                kinds.into_iter().flatten().map(String::as_str).collect()
            }
            Read::Ephemerals { .. } | Read::Identities | Read::Malformed => Vec::new(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let with = |watch: bool| if watch { " and watch" } else { "" };
        match self {
            Read::Stat { path, watch } => format!("exists {path}{}", with(*watch)),
            Read::Data { path, watch } => format!("get {path}{}", with(*watch)),
            Read::Children { path, watch } => format!("list {path}{}", with(*watch)),
            Read::RemoveWatches(path, None) => format!("unwatch {path}"),
            Read::RemoveWatches(path, Some(kind)) => format!("unwatch {path} {kind:?}"),
            other => format!("{other:?}"),
        }
    }
}
