//! How a transaction is applied to a copy of the tree.

use zookeeper_recipes_core::ensemble::{Created, Outcome, Stat};

use super::transaction::{Body, Transaction};
use super::tree::{Applied, Edit, Owner, Tree};

/// Applies a transaction to a tree, telling each edit and what came of it.
pub(crate) fn apply(
    tree: &mut Tree,
    transaction: &Transaction,
    mut done: impl FnMut(&Edit, Applied),
) {
    let zxid = transaction.zxid;
    let time = transaction.time;
    match &transaction.body {
        Body::Write { edits, .. } => {
            for edit in edits {
                done(edit, tree.apply(edit, zxid, time));
            }
        }
        Body::CloseSession { ephemerals, .. } => {
            for path in ephemerals {
                let edit = Edit::Delete { path: path.clone() };
                done(&edit, tree.apply(&edit, zxid, time));
            }
        }
        Body::Refused(_) | Body::OpenSession => {}
    }
    tree.zxid = zxid;
}

pub(super) fn outcome(edit: Edit, stat: Option<Stat>, tells_metadata: bool) -> Outcome {
    match (edit, stat) {
        (Edit::Create { path, owner, .. }, Some(stat)) => {
            let tells = tells_metadata || owner == Owner::Container;
            let stat = if tells { stat } else { NO_METADATA };
            Outcome::Created(Created { path, stat })
        }
        (Edit::SetData { .. }, Some(stat)) => Outcome::DataSet(stat),
        (Edit::Delete { .. }, _) => Outcome::Deleted,
        _ => Outcome::Checked,
    }
}

/// What the client makes of a reply without metadata: [`Stat::is_invalid`].
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
