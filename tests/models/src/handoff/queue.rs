//! The order of the queue, and the rules.

use std::cmp::Reverse;

use super::server::{Label, Tree, Znode, Zxid};
use super::setting::{Change, HandoffModel};

/// What the rule says about a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Hold,
    /// Waits on the contender of this place.
    Wait(usize),
}

pub(super) fn in_order(tree: &Tree) -> Vec<Znode> {
    let mut queue = tree.znodes.clone();
    // Contenders at the end of the count have the same number, and so has a replacement.
    queue.sort_by_key(|znode| (znode.number, znode.czxid));
    queue
}

impl HandoffModel {
    /// The contenders in the order that a contender takes for that of the queue.
    pub(super) fn queue(&self, tree: &Tree) -> Vec<Znode> {
        let mut queue = in_order(tree);
        if self.has(Change::OrdersByName) {
            // The names of the model are ordered by their owners, the last one first.
            queue.sort_by_key(|znode| (znode.number, Reverse(znode.owner)));
        }
        queue
    }
}

/// Asks the rule about the last of these contenders.
pub(super) fn decide(queue: &[Znode]) -> Verdict {
    let Some((me, before)) = queue.split_last() else {
        return Verdict::Hold;
    };
    let place = match me.label {
        Label::Read => before.iter().rposition(|znode| znode.label == Label::Write),
        _ => before.len().checked_sub(1),
    };
    place.map_or(Verdict::Hold, Verdict::Wait)
}

/// True if this contender has to leave the queue to one behind it.
pub(super) fn steps_back(queue: &[Znode], me: usize, successor: Option<Zxid>) -> bool {
    queue[me].label == Label::Candidate
        && successor.is_some_and(|named| queue[me + 1..].iter().any(|znode| znode.czxid == named))
}
