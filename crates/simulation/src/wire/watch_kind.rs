//! The kinds of watch.

/// Which of a server's two tables a watch stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchKind {
    /// Set by a get or an exists: sees a znode created, changed and deleted.
    Data,
    /// Set by a list: sees a znode's children come and go, and the znode deleted.
    Children,
}
