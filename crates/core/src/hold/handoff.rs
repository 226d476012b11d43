//! The fast paths: when a contender holds without a list of the queue.
//!
//! [`docs::handoff`](crate::docs::handoff) has the proof of each path, and the test that finds a
//! missing step. The conditions of the proofs are in this file:
//!
//! | proof | steps | condition |
//! |---|---|---|
//! | a write means a release | 1, 2, 4 | [`Handoff::access`], [`written_by_owner_alone`] |
//! | | 3 | [`Handoff::sole_writer`] |
//! | the next contender holds | 1 to 4 | [`grants_on_mark`]; [`Handoff::begin_hold`]: only a hold marks |
//! | | 5 to 7 | [`OwnWatch::begin_grant`] |
//! | the only one before | 1 to 4 | [`grants_on_deletion`] |
//! | | 5 | [`OwnWatch::begin_grant`] |
//! | | 6 | [`depends_on_places_alone`] |
//! | coming back | 1 | [`Handoff::begin_hold`]: the only child, by the list or by its number |
//! | | 2 | [`Handoff::begin_hold`]: noted once the deletion is confirmed |
//! | | 3 to 5 | [`Alone::proves_alone`] |
//!
//! Other files do what the proofs rely on. `hold/deletion.rs` sends the mark and the deletion in one
//! transaction. `queue/wait.rs` counts the children, and requests the watches in the order of step 5.
//! `hold/grant.rs` marks a hold that did not wait once its session sets a loss watch.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Arc, OnceLock};

use futures_util::future::FutureExt;

use crate::contender::{Contender, Identity, Sequence};
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::Znode;
use crate::hold_state::LossReason;
use crate::live::last_connection::LastConnection;
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::LiveSession;
use crate::path::NodePath;
use crate::rule::{QueueView, Rule, Verdict};
use crate::server::ensemble::{Acl, AuthId, CreateMode, Operation, Permission, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::sync::{Mutex, SharedWork, lock, or_pending};

/// What a session knows for the fast paths of its contenders.
#[derive(Default)]
pub(crate) struct Handoff {
    /// Whether only the session's own identity can write to its contenders, once it is tried.
    is_enforced: OnceLock<bool>,
    trial: SharedWork<Option<bool>>,
    directories: Arc<Mutex<UsedDirectories>>,
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
                let acl = written_by_owner_alone(acl, &writer);
                (identity.marking(), Cow::Owned(acl))
            }
            None => (identity, Cow::Borrowed(acl)),
        }
    }

    /// The identity that alone can write to this session's contenders, if the ensemble enforces it.
    ///
    /// The method sends one request in a session, and another one if the directory did not exist.
    async fn sole_writer(
        &self,
        server: &Arc<ServerSession>,
        directory: &str,
        identity: &Identity,
    ) -> Option<AuthId> {
        let owner = server.own_identity.clone()?;
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
    pub(crate) fn enter(&self, directory: &NodePath) -> KnownDirectory {
        lock(&self.directories).enter(directory)
    }

    /// Notes whether a directory was missing.
    ///
    /// The session expects the same of each directory beside it that it uses for the first time.
    pub(crate) fn note_directory(&self, directory: &NodePath, was_missing: bool) {
        let parent = directory.parent().filter(|_| was_missing);
        lock(&self.directories).missing_below = parent;
    }

    /// Notes that the contender of this znode holds.
    ///
    /// `alone` is the contender, if its znode is the only child of the directory.
    pub(crate) fn begin_hold(
        &self,
        znode: &Znode,
        directory: &NodePath,
        has_waited: bool,
        alone: Option<Alone>,
    ) {
        if has_waited {
            // Others have probably come during the wait. A hold without a wait is marked from its
            // first loss watch on: a brief hold seldom has a waiter, and a plain deletion costs
            // less.
            znode.mark_on_release();
        }
        if let Some(alone) = alone {
            let (directories, directory) = (self.directories.clone(), directory.clone());
            znode.once_deleted(move || lock(&directories).note(&directory, Some(alone)));
        }
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

/// The watch of a waiter on its own znode, and the connection of all its watches on contenders.
///
/// It is set before the watches on the contenders before the waiter. So if the waiter's znode was
/// deleted first, the waiter knows it by the time it learns of them.
#[derive(Default)]
pub(crate) struct OwnWatch {
    watch: Option<LossWatch>,
    /// The connection before the last watch on a contender or on the own znode was requested.
    ///
    /// Over a later one, events may come in another order than they happened in.
    requested_over: LastConnection,
}

impl OwnWatch {
    pub(crate) fn is_set(&self) -> bool {
        self.watch.is_some()
    }

    pub(crate) fn set(&mut self, watch: LossWatch) {
        self.watch = Some(watch);
    }

    /// The watch, for the hold of the waiter.
    pub(crate) fn take(&mut self) -> Option<LossWatch> {
        self.watch.take()
    }

    /// Call it before a watch on the own znode or on a contender is requested.
    pub(crate) fn note_request(&self, server: &ServerSession) {
        self.requested_over.note(server);
    }

    /// Resolves when the znode is no longer the waiter's.
    pub(crate) async fn lost(&mut self) -> LossReason {
        or_pending(self.watch.as_mut().map(LossWatch::lost)).await
    }

    /// Begins a grant when an event shows that no contender is left before the waiter.
    ///
    /// `None` if that event proves too little, or the lease does not allow a grant: the waiter
    /// lists the queue. If the lease has lapsed, the waiter's znode may be deleted.
    pub(crate) fn begin_grant(
        &mut self,
        live: &LiveSession,
        server: &ServerSession,
    ) -> Result<Option<LeaseEpoch>, LossReason> {
        let is_certain = self.is_certain(server)? && server.orders_events();
        Ok(is_certain.then(|| live.begin_grant()).flatten())
    }

    /// True if the waiter's own znode is known to exist, at an event of another znode.
    ///
    /// If both znodes are watched over one connection, every earlier event of the own znode is
    /// known. After a reconnect an earlier event may come later.
    pub(crate) fn is_certain(&mut self, server: &ServerSession) -> Result<bool, LossReason> {
        let is_same_connection = self.requested_over.is_next(server);
        match &mut self.watch {
            Some(watch) => Ok(watch.is_certain()? && is_same_connection),
            None => Ok(false),
        }
    }
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
    /// True if the number of the contender's own znode proved that it was alone.
    pub(crate) was_known_alone: bool,
}

impl Alone {
    /// True if a contender created after this one's deletion is alone, too.
    ///
    /// A directory that was deleted and created again counts from zero. It reaches this number only
    /// after one transaction for each number before. If there were fewer transactions, it is the
    /// same directory.
    pub(crate) fn proves_alone(&self, sequence: Sequence, czxid: i64) -> bool {
        let number = self.sequence.get();
        let same_leader = self.czxid >> 32 == czxid >> 32;
        let transactions = czxid.checked_sub(self.czxid);
        let fewer = 0..=i64::from(number);
        // The last number of the count is given out more than once.
        sequence.get() < i32::MAX
            && number.checked_add(1) == Some(sequence.get())
            && same_leader
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
    fn enter(&mut self, directory: &NodePath) -> KnownDirectory {
        let [new, old] = &mut self.last_alone;
        let older = old.remove(directory);
        let known = new.remove(directory).or(older);
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
