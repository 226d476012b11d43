//! Transactions: the entries of the log, in the order in which all servers apply them.

use zookeeper_recipes_core::ensemble::{Created, Outcome, Stat};

use super::tree::{Applied, Edit, EditKind, Owner, Tree};
use crate::wire::answer::Failure;
use crate::wire::network::ConnectionId;

/// The metadata of a reply that has none: [`Stat::is_invalid`].
const NO_METADATA: Stat = Stat {
    czxid: -1,
    mzxid: -1,
    pzxid: -1,
    ctime: 0,
    mtime: 0,
    version: -1,
    cversion: -1,
    aversion: -1,
    ephemeral_owner: 0,
    data_length: 0,
    num_children: 0,
};

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
    Write {
        edits: Vec<Edit>,
        several: bool,
    },
    Refused(Failure),
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
            Body::Write { edits, .. } => {
                let edits: Vec<String> = edits.iter().map(edit_text).collect();
                edits.join("; ")
            }
            Body::Refused(failure) => format!("refused: {failure:?}"),
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
        Body::Write { edits, .. } => {
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

pub(super) fn outcome(edit: Edit, stat: Option<Stat>, reports_metadata: bool) -> Outcome {
    match (edit.kind, stat) {
        (EditKind::Create { owner, .. }, Some(stat)) => {
            let reports = reports_metadata || owner == Owner::Container;
            let stat = if reports { stat } else { NO_METADATA };
            let path = edit.path;
            Outcome::Created(Created { path, stat })
        }
        (EditKind::SetData { .. }, Some(stat)) => Outcome::DataSet(stat),
        (EditKind::Delete, _) => Outcome::Deleted,
        _ => Outcome::Checked,
    }
}
