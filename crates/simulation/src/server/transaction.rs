//! Transactions: the entries of the log, in the order in which all servers apply them.

use super::tree::{Applied, Edit, EditKind, Tree};
use crate::wire::message::Answer;
use crate::wire::network::ConnectionId;

/// A request: its connection, and its number on the connection.
pub(crate) type Origin = (ConnectionId, u64);

/// One entry of the ensemble's log. Refused writes have one too: they take their place among
/// the others, and a zxid.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) zxid: i64,
    pub(crate) session: i64,
    /// The request that waits for it.
    pub(crate) origin: Option<Origin>,
    /// When it was proposed, in milliseconds since 1970.
    pub(crate) time: i64,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Write(Vec<Edit>),
    /// Nothing is done, for the reason in this answer.
    Refused(Answer),
    OpenSession,
    CloseSession {
        /// The ephemeral znodes, which are deleted with the session.
        znodes: Vec<String>,
        expired: bool,
    },
}

impl Transaction {
    pub(crate) fn text(&self) -> String {
        match &self.body {
            Body::Write(edits) => {
                let edits: Vec<String> = edits.iter().map(edit_text).collect();
                edits.join("; ")
            }
            Body::Refused(answer) => format!("refused: {answer:?}"),
            Body::OpenSession => "session opened".to_owned(),
            Body::CloseSession { znodes, expired } => format!(
                "session {}, with {}",
                if *expired { "expired" } else { "closed" },
                if znodes.is_empty() {
                    "nothing".to_owned()
                } else {
                    znodes.join(" ")
                },
            ),
        }
    }
}

fn edit_text(edit: &Edit) -> String {
    let path = &edit.path;
    match &edit.kind {
        EditKind::Check => "checked".to_owned(),
        EditKind::Create { .. } => format!("created {path}"),
        EditKind::Delete => format!("deleted {path}"),
        EditKind::SetAcl(_) => format!("set the ACL of {path}"),
        EditKind::SetCreates(creates) => format!("set the counter of {path} to {creates}"),
        EditKind::SetData { version, .. } => format!("set {path} (version {version})"),
    }
}

/// Applies a transaction to a tree, and reports each edit with what came of it.
pub(super) fn apply(
    tree: &mut Tree,
    transaction: &Transaction,
    mut done: impl FnMut(&Edit, Applied),
) {
    let (zxid, time) = (transaction.zxid, transaction.time);
    match &transaction.body {
        Body::Write(edits) => {
            for edit in edits {
                done(edit, tree.apply(edit, zxid, time));
            }
        }
        Body::CloseSession { znodes, .. } => {
            for path in znodes {
                let edit = EditKind::Delete.of(path);
                done(&edit, tree.apply(&edit, zxid, time));
            }
        }
        Body::Refused(_) | Body::OpenSession => {}
    }
    tree.zxid = zxid;
}
