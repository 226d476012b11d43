//! The fast paths: when a contender holds without a list of the queue.
//!
//! [`docs::handoff`](crate::docs::handoff) has the proof of each path, and the test that finds a
//! missing step. Most conditions of the proofs are in this file:
//!
//! | proof | steps | condition |
//! |---|---|---|
//! | a write means a release | 1, 2, 4 | [`Handoff::access`], [`written_by_owner_alone`] |
//! | | 3 | [`Handoff::sole_writer`] |
//! | the next contender holds | 1 to 4 | [`grants_on_mark`]; `Grant::watch_by`: only a hold marks |
//! | | 5 to 7 | `OwnWatch::grant_epoch` in `queue/wait.rs` |
//! | the only one before | 1 to 4 | [`grants_on_deletion`] |
//! | | 5 | `OwnWatch::grant_epoch` |
//! | | 6 | [`depends_on_places_alone`] |
//! | coming back | 1 | `queue/attempt.rs`: the only child, by the list or by its number |
//! | | 2 | `Znode::delete` in `hold/own_znode.rs`: noted once the deletion is confirmed |
//! | | 3 to 6 | [`Alone::proves_alone`] |
//!
//! Other files do what the proofs rely on. `hold/deletion.rs` sends the mark and the deletion in one
//! transaction. `queue/wait.rs` requests the watches in the order of step 5. `hold/grant.rs` marks a
//! hold that has a loss watch.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Arc, OnceLock};

use futures_util::future::FutureExt;

use crate::contender::{Contender, Identity, Sequence};
use crate::path::NodePath;
use crate::rule::{QueueView, Rule, Verdict};
use crate::server::ensemble::{Acl, AuthId, CreateMode, Operation, Permission, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::sync::{Mutex, SharedWork, lock};

/// What a session knows for the fast paths of its contenders.
#[derive(Default)]
pub(crate) struct Handoff {
    /// Whether only the session's own identity can write to its contenders, once it is tried.
    is_enforced: OnceLock<bool>,
    trial: SharedWork<Option<bool>>,
    directories: Mutex<UsedDirectories>,
}

impl Handoff {
    /// The identity of a contender's znode, and its access control list.
    ///
    /// If the release is to be marked, and the ensemble lets only this process write to the znode,
    /// the identity says so.
    pub(crate) async fn access<'a>(
        &self,
        server: &Arc<ServerSession>,
        directory: &str,
        identity: Identity,
        acl: &'a [Acl],
        is_to_mark: bool,
    ) -> (Identity, Cow<'a, [Acl]>) {
        let writer = match is_to_mark {
            true => self.sole_writer(server, directory, &identity).await,
            false => None,
        };
        match writer {
            Some(writer) => {
                let acl = written_by_owner_alone(acl, writer);
                (identity.marking(), Cow::Owned(acl))
            }
            None => (identity, Cow::Borrowed(acl)),
        }
    }

    /// The identity that alone can write to this session's contenders, if the ensemble enforces it.
    ///
    /// The method sends one request in a session, and another one if the directory did not exist.
    async fn sole_writer<'s>(
        &self,
        server: &'s Arc<ServerSession>,
        directory: &str,
        identity: &Identity,
    ) -> Option<&'s AuthId> {
        let owner = server.own_identity.as_ref()?;
        let enforced = match self.is_enforced.get() {
            Some(enforced) => *enforced,
            None => {
                let begin = || {
                    let (server, owner) = (server.clone(), owner.clone());
                    let (directory, identity) = (directory.to_owned(), *identity);
                    async move { is_enforced(&server, &directory, &identity, &owner).await }.boxed()
                };
                let enforced = self.trial.join(begin).await?;
                *self.is_enforced.get_or_init(|| enforced)
            }
        };
        enforced.then_some(owner)
    }

    /// What is known of the directory before a create in it. From then on, it counts as used.
    ///
    /// The last contender is forgotten, because the create makes its number useless.
    pub(crate) fn take_known(&self, directory: &NodePath) -> KnownDirectory {
        lock(&self.directories).take_known(directory)
    }

    /// Notes whether a directory was missing.
    ///
    /// The session expects the same of each directory beside it that it uses for the first time.
    pub(crate) fn note_directory(&self, directory: &NodePath, was_missing: bool) {
        let parent = directory.parent().filter(|_| was_missing);
        lock(&self.directories).missing_below = parent;
    }

    /// Notes that a contender which was alone in the directory is deleted for certain.
    pub(crate) fn note_alone(&self, directory: &NodePath, alone: Alone) {
        lock(&self.directories).note(directory, Some(alone));
    }
}

/// True if a waiter with these contenders up to it holds once the one at `place` marks its release.
///
/// Only a holder whose label holds only as the first contender marks its release. So no contender
/// is left before such a holder. The list shows all contenders between the two. Some may have left
/// since. This cannot change "hold" into "wait", because a rule is monotone.
pub(crate) fn grants_on_mark(rule: &dyn Rule, contenders: &[Contender], place: usize) -> bool {
    let first = &contenders[place];
    first.is_closed_to_others()
        && rule.holds_only_first(first.label())
        && would_hold(rule, &contenders[place + 1..])
}

/// True if a waiter with these contenders up to it holds at any deletion of the one at `place`.
pub(crate) fn grants_on_deletion(rule: &dyn Rule, contenders: &[Contender], place: usize) -> bool {
    // If more contenders are before the waiter, one deletion seldom lets it hold.
    let only = matches!(contenders, [_, _]) && place == 0;
    only && !rule.may_be_replaced(contenders[place].label()) && would_hold(rule, &contenders[1..])
}

/// True if the rule lets the last of these contenders hold, whatever comes behind it.
fn would_hold(rule: &dyn Rule, contenders: &[Contender]) -> bool {
    let Some((me, before)) = contenders.split_last() else {
        return false;
    };
    let view = QueueView::new(before, me, None);
    depends_on_places_alone(rule) && rule.decide(&view) == Ok(Verdict::Hold)
}

/// True if the contenders up to a waiter decide whether it holds.
///
/// The directory's data, and the contenders behind it, may change while it waits.
fn depends_on_places_alone(rule: &dyn Rule) -> bool {
    !rule.reads_directory() && !rule.looks_behind()
}

/// The access control list of a contender's znode that only `owner` can write to.
///
/// The readers of `acl` can read the znode.
fn written_by_owner_alone(acl: &[Acl], owner: &AuthId) -> Vec<Acl> {
    let readers = acl
        .iter()
        .filter(|entry| entry.permissions.has(Permission::READ))
        .map(|entry| Acl::new(Permission::READ, entry.id.clone()));
    let owner = Acl::new(Permission::ALL, owner.clone());
    readers.chain([owner]).collect()
}

/// Tries whether the ensemble lets `owner`, and no other identity, write to such a znode.
///
/// A server may be configured to check no access control lists, or to digest credentials in another
/// way. The trial is one request: a transaction that the server refuses in every case, so that no
/// znode remains. The refused operation is the answer. The result is `None` if the reply does not
/// say.
async fn is_enforced(
    server: &ServerSession,
    directory: &str,
    identity: &Identity,
    owner: &AuthId,
) -> Option<bool> {
    const OWN_WRITE: usize = 1;
    const FOREIGN_WRITE: usize = 3;
    const NEVER_TRUE: usize = 4;
    let everyone = AuthId::anyone();
    let own = identity.path(directory, "own");
    let foreign = identity.path(directory, "foreign");
    let create = |path: &str, acl| Operation::create(path, [], CreateMode::Ephemeral, acl);
    let readable = [Acl::new(Permission::READ, everyone)];
    let operations = [
        create(&own, written_by_owner_alone(&readable, owner)),
        Operation::set_data(&own, []),
        create(&foreign, readable.to_vec()),
        Operation::set_data(&foreign, []),
        Operation::check(own).at_version(i32::MAX),
    ];
    let refused = server.transact(&operations).await.err()?;
    match (refused.operation, refused.error) {
        (Some(FOREIGN_WRITE), ServerError::Refused(Refusal::NoAuth)) => Some(true),
        (Some(OWN_WRITE), ServerError::Refused(Refusal::NoAuth)) => Some(false),
        (Some(NEVER_TRUE), ServerError::Refused(_)) => Some(false),
        _ => None,
    }
}

/// A contender that held while its znode was the only child of the directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    pub(crate) sequence: Sequence,
    /// The transaction that created the contender's znode.
    pub(crate) czxid: i64,
    /// The connection over which this was learned, or an earlier one.
    pub(crate) connection: Option<u64>,
    /// True if the number of its own znode proved it, so that no list was needed.
    pub(crate) by_number: bool,
}

impl Alone {
    /// True if the contender with this number is alone, too. It was created after this one's deletion.
    ///
    /// A directory that was deleted and created again counts from zero. It reaches this number only
    /// after one transaction for each number before. If there were fewer transactions, it is the
    /// same directory.
    ///
    /// `connection` carried the create and its reply. Servers that were reached by an earlier one may
    /// have lost data since, and give out the same numbers again.
    pub(crate) fn proves_alone(
        &self,
        sequence: Sequence,
        czxid: i64,
        connection: Option<u64>,
    ) -> bool {
        let number = self.sequence.get();
        let same_leader = self.czxid >> 32 == czxid >> 32;
        let same_connection = connection.is_some() && self.connection == connection;
        let transactions = czxid.checked_sub(self.czxid);
        let fewer = 0..=i64::from(number);
        // The last number of the count is given out more than once.
        sequence.get() < i32::MAX
            && number.checked_add(1) == Some(sequence.get())
            && same_leader
            && same_connection
            && transactions.is_some_and(|transactions| fewer.contains(&transactions))
    }
}

/// What is known of a directory before a create in it.
#[derive(Clone, Copy)]
pub(crate) struct KnownDirectory {
    /// The last contender of the session there, if it was alone and is deleted.
    pub(crate) last: Option<Alone>,
    /// True if the session uses the directory for the first time, and the last one beside it was
    /// missing.
    pub(crate) may_be_missing: bool,
}

/// The directories that a session used last: at least [`KEPT`], and at most twice as many.
#[derive(Debug, Default)]
struct UsedDirectories {
    /// The last contender of each directory, if it was alone and its znode is deleted for certain.
    /// The second map has the directories of longer ago.
    last_alone: [BTreeMap<NodePath, Option<Alone>>; 2],
    /// The parent of the directory whose create was last sent, if that was missing.
    missing_below: Option<NodePath>,
}

/// How many directories are noted before the older half of them is forgotten.
const KEPT: usize = 512;

impl UsedDirectories {
    fn take_known(&mut self, directory: &NodePath) -> KnownDirectory {
        let [new, old] = &mut self.last_alone;
        if let Some(known) = new.get_mut(directory) {
            return KnownDirectory {
                last: known.take(),
                may_be_missing: false,
            };
        }
        let known = old.remove(directory);
        self.note(directory, None);
        let parent = &self.missing_below;
        KnownDirectory {
            last: known.flatten(),
            may_be_missing: known.is_none() && parent.is_some() && *parent == directory.parent(),
        }
    }

    fn note(&mut self, directory: &NodePath, alone: Option<Alone>) {
        let [new, old] = &mut self.last_alone;
        if let Some(known) = new.get_mut(directory) {
            *known = alone;
            return;
        }
        if new.len() == KEPT {
            *old = take(new);
        }
        new.insert(directory.clone(), alone);
    }
}

#[cfg(test)]
#[path = "../../tests/unit/handoff.rs"]
mod tests;
