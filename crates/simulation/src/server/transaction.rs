//! What the leader has decided, in the order in which all servers apply it.

use super::tree::Edit;
use crate::wire::answer::Failure;
use crate::wire::connection::ConnectionId;

/// One entry of the ensemble's log. Refused writes have one too: they take their place among
/// the others, and a zxid.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) zxid: i64,
    pub(crate) session: i64,
    /// Who waits for it: which request on which connection.
    pub(crate) origin: Option<(ConnectionId, u64)>,
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
        ephemerals: Vec<String>,
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
            Body::CloseSession {
                ephemerals,
                expired,
            } => format!(
                "session {}, with {}",
                if *expired { "expired" } else { "closed" },
                if ephemerals.is_empty() {
                    "nothing".to_owned()
                } else {
                    ephemerals.join(" ")
                },
            ),
        }
    }
}

fn edit_text(edit: &Edit) -> String {
    match edit {
        Edit::Check { .. } => "checked".to_owned(),
        Edit::Create { path, .. } => format!("created {path}"),
        Edit::Delete { path } => format!("deleted {path}"),
        Edit::SetAcl { path, .. } => format!("set the ACL of {path}"),
        Edit::SetCreates { path, creates } => format!("set the counter of {path} to {creates}"),
        Edit::SetData { path, version, .. } => format!("set {path} (version {version})"),
    }
}
