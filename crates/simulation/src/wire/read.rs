//! Reads, and changes of a client's watches.

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
    Each(Vec<EachRead>),
    /// Sets a watch that stays when it has seen something.
    AddWatch { path: String, recursive: bool },
    /// Takes off the watches of a kind, or with no kind both.
    RemoveWatches {
        path: String,
        kind: Option<WatchKind>,
    },
    /// Whether a watch of a kind stands, or with no kind one of either.
    CheckWatches {
        path: String,
        kind: Option<WatchKind>,
    },
    /// Sets the watches of a session that has come back.
    SetWatches(Box<WatchesToSet>),
    /// A request whose content the server cannot read.
    Malformed,
}

/// One read of several.
#[derive(Clone, Debug)]
pub(crate) enum EachRead {
    Data { path: String },
    Children { path: String },
}

impl EachRead {
    fn path(&self) -> &str {
        match self {
            EachRead::Data { path } | EachRead::Children { path } => path,
        }
    }
}

/// The watches of a session that has come back.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchesToSet {
    /// The last transaction that the client has seen.
    pub(crate) seen: i64,
    pub(crate) data: Vec<String>,
    pub(crate) exists: Vec<String>,
    pub(crate) children: Vec<String>,
    pub(crate) persistent: Vec<String>,
    pub(crate) recursive: Vec<String>,
}

impl Read {
    pub(crate) fn kind(&self) -> RequestKind {
        match self {
            Read::Stat { .. } => RequestKind::Exists,
            Read::Data { .. } => RequestKind::Get,
            Read::Children { .. } => RequestKind::List,
            Read::Each(_) => RequestKind::GetEach,
            Read::RemoveWatches { .. } => RequestKind::RemoveWatch,
            Read::SetWatches(_) => RequestKind::SetWatches,
            Read::Acl { .. }
            | Read::CountBelow { .. }
            | Read::Ephemerals { .. }
            | Read::Identities
            | Read::AddWatch { .. }
            | Read::CheckWatches { .. }
            | Read::Malformed => RequestKind::Other,
        }
    }

    pub(crate) fn paths(&self) -> Vec<&str> {
        match self {
            Read::Stat { path, .. }
            | Read::Data { path, .. }
            | Read::Children { path, .. }
            | Read::Acl { path }
            | Read::CountBelow { path }
            | Read::AddWatch { path, .. }
            | Read::RemoveWatches { path, .. }
            | Read::CheckWatches { path, .. } => vec![path],
            Read::Each(reads) => reads.iter().map(EachRead::path).collect(),
            Read::Ephemerals { .. } | Read::Identities | Read::SetWatches(_) | Read::Malformed => {
                Vec::new()
            }
        }
    }

    /// About how many bytes it has on the wire.
    pub(crate) fn size(&self) -> usize {
        let of_paths =
            |paths: &[String]| -> usize { paths.iter().map(|path| path.len() + 4).sum() };
        match self {
            Read::SetWatches(watches) => {
                let kinds = [
                    &watches.data,
                    &watches.exists,
                    &watches.children,
                    &watches.persistent,
                    &watches.recursive,
                ];
                kinds.into_iter().map(|paths| of_paths(paths)).sum()
            }
            _ => self.paths().into_iter().map(|path| path.len() + 4).sum(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let with = |watch: bool| if watch { " and watch" } else { "" };
        match self {
            Read::Stat { path, watch } => format!("exists {path}{}", with(*watch)),
            Read::Data { path, watch } => format!("get {path}{}", with(*watch)),
            Read::Children { path, watch } => format!("list {path}{}", with(*watch)),
            Read::Acl { path } => format!("get the ACL of {path}"),
            Read::CountBelow { path } => format!("count the znodes below {path}"),
            Read::Ephemerals { prefix } => format!("list own ephemeral znodes below {prefix:?}"),
            Read::Identities => "who am I".to_owned(),
            Read::Each(reads) => {
                let paths: Vec<&str> = reads.iter().map(EachRead::path).collect();
                format!("get each of {}", paths.join(" "))
            }
            Read::AddWatch { path, recursive } => {
                format!("add a watch on {path}, recursive: {recursive}")
            }
            Read::RemoveWatches { path, kind: None } => format!("unwatch {path}"),
            Read::RemoveWatches {
                path,
                kind: Some(kind),
            } => format!("unwatch {path} {kind:?}"),
            Read::CheckWatches { path, kind } => format!("check watches of {path}: {kind:?}"),
            Read::SetWatches(watches) => {
                let WatchesToSet {
                    seen,
                    data,
                    exists,
                    children,
                    ..
                } = &**watches;
                format!(
                    "watch anew since {seen:#x}: data {data:?} exists {exists:?} children {children:?}"
                )
            }
            Read::Malformed => "a request that cannot be read".to_owned(),
        }
    }
}

/// Which of a server's two tables a watch stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchKind {
    /// Set by a get or an exists: sees a znode created, changed and deleted.
    Data,
    /// Set by a list: sees a znode's children come and go, and the znode deleted.
    Children,
}
