//! One attempt in one ZooKeeper session: enter, look, wait, look again, hold.

use std::borrow::Cow;

use crate::contender::{Contender, Identity, Sequence};
use crate::error::Error;
use crate::events::attempt::AttemptRecord;
use crate::events::session as events;
use crate::hold::Hold;
use crate::hold::grant::Grant;
use crate::hold::handoff::Alone;
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::{Znode, ZnodeOwner, may_have_created};
use crate::hold_state::FencingToken;
use crate::live::lease::LeaseEpoch;
use crate::live::short_leases::LeaseWait;
use crate::queue::directory::MissingDirectory;
use crate::queue::other_waits::{poll, wait_on_parent};
use crate::queue::session_queue::{Listing, QueueReads, SessionQueue};
use crate::queue::wait::{
    Decision, Predecessors, WaitResult, Watches, look, wait_for_predecessors, would_hold_at_once,
};
use crate::retry::Backoff;
use crate::rule::WaitStrategy;
use crate::server::ensemble::{Acl, CreateMode, Created, Reply};
use crate::server::error::Refusal;
use crate::sync::begun;

/// An entered contender: its znode exists.
///
/// If it is dropped, its znode is deleted in the background.
struct Enqueued {
    owner: ZnodeOwner,
    /// The transaction that created the znode.
    czxid: i64,
    /// True if the znode's number proves that nobody else was in the queue.
    known_alone: bool,
}

impl Enqueued {
    /// Holds. The lease may grant after this number of lapses.
    ///
    /// `only` is the contender's number if its znode is the only child of the directory.
    fn hold(
        self,
        queue: &SessionQueue<'_>,
        attempt: &AttemptRecord,
        epoch: LeaseEpoch,
        loss_watch: Option<LossWatch>,
        only: Option<Sequence>,
    ) -> Hold {
        let znode = self.owner.znode.clone();
        let alone = only.map(|sequence| Alone {
            sequence,
            czxid: self.czxid,
            was_known_alone: self.known_alone,
        });
        let (handoff, directory) = (&queue.open.handoff, &queue.shared.directory);
        handoff.begin_hold(&znode, directory, loss_watch.is_some(), alone);
        let token = FencingToken::from(self.czxid);
        let mut grant = Grant::new(znode, token, epoch, attempt.acquired(token));
        grant.rule = Some(queue.shared.rule.clone());
        grant.limit(queue.shared.options.max_hold);
        Hold::begin(grant, self.owner, queue.open, loss_watch)
    }
}

/// Enters the queue, and waits in it until the rule says "hold".
pub(crate) async fn until_granted(
    queue: &SessionQueue<'_>,
    attempt: &AttemptRecord,
) -> Result<Hold, Error> {
    loop {
        let (entered, listing) = enter(queue).await?;
        match wait_for_grant(queue, attempt, entered, listing).await? {
            Some(hold) => return Ok(hold),
            None => attempt.stepped_back(),
        }
    }
}

/// Waits until the rule says "hold". `None` if the contender steps back: its znode is deleted.
async fn wait_for_grant(
    queue: &SessionQueue<'_>,
    attempt: &AttemptRecord,
    entered: Enqueued,
    mut listing: Listing,
) -> Result<Option<Hold>, Error> {
    let znode = entered.owner.znode.clone();
    let mut watches = Watches::default();
    let mut lease_wait = LeaseWait::default();
    loop {
        match look(queue, &znode, listing).await? {
            Decision::Hold { only } => match queue.begin_grant() {
                Some(epoch) => {
                    let loss_watch = watches.own.take();
                    return Ok(Some(entered.hold(queue, attempt, epoch, loss_watch, only)));
                }
                None => renew_lease(queue, &mut lease_wait).await?,
            },
            Decision::StepBack => {
                let deleted = znode.delete().await;
                deleted.map_err(|error| Error::at_delete(znode.path(), queue.live.id, error))?;
                return Ok(None);
            }
            Decision::Wait(on) => {
                on.report(attempt);
                on.warn_of_own_wait(queue, &znode);
                let waited = wait_by_strategy(&mut watches, queue, &znode, &on).await?;
                attempt.woken();
                match waited {
                    WaitResult::Holds(epoch) => {
                        let loss_watch = watches.own.take();
                        let hold = entered.hold(queue, attempt, epoch, loss_watch, None);
                        return Ok(Some(hold));
                    }
                    WaitResult::Listed(after) => {
                        listing = after;
                        continue;
                    }
                    WaitResult::LookAgain => {}
                }
            }
        }
        listing = queue.list_again().await?;
    }
}

/// Waits in the way that the queue's options choose.
async fn wait_by_strategy(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    own: &Znode,
    on: &Predecessors,
) -> Result<WaitResult, Error> {
    match queue.shared.options.strategy {
        WaitStrategy::Predecessor => wait_for_predecessors(watches, queue, own, on).await,
        WaitStrategy::Parent => wait_on_parent(watches, queue).await.map(WaitResult::Listed),
        WaitStrategy::Poll(interval) => poll(queue, interval).await.map(WaitResult::Listed),
    }
}

/// Enters the queue if the rule says "hold", and holds if it says so again.
pub(crate) async fn try_grant(
    queue: &SessionQueue<'_>,
    attempt: &AttemptRecord,
) -> Result<Option<Hold>, Error> {
    queue.open.znodes.abandoned.until_answered(queue.live).await;
    if !would_hold_at_once(queue).await? {
        return Ok(None);
    }
    queue.live.until_may_enter(queue.directory()).await?;
    let (entered, mut listing) = enter_at_once(queue).await?;
    let mut lease_wait = LeaseWait::default();
    loop {
        match look(queue, &entered.owner.znode, listing).await? {
            Decision::Hold { only } => match queue.begin_grant() {
                Some(epoch) => return Ok(Some(entered.hold(queue, attempt, epoch, None, only))),
                None => renew_lease(queue, &mut lease_wait).await?,
            },
            Decision::StepBack | Decision::Wait(_) => return Ok(None),
        }
        listing = queue.list_again().await?;
    }
}

/// Waits until the lease may grant, because the session may have expired.
///
/// After a while without one the attempt fails: the contender would bar all others.
async fn renew_lease(queue: &SessionQueue<'_>, wait: &mut LeaseWait) -> Result<(), Error> {
    queue.live.until_may_grant(queue.directory(), wait).await
}

/// Enters the queue, after a wait for a permit if the queue's options limit the entries.
async fn enter(queue: &SessionQueue<'_>) -> Result<(Enqueued, Listing), Error> {
    queue.live.until_may_enter(queue.directory()).await?;
    let _permit = match &queue.shared.options.entries {
        Some(permits) => permits.acquire().await.ok(),
        None => None,
    };
    enter_at_once(queue).await
}

/// Creates the contender's znode, and lists the queue after that.
///
/// If the last contender was known to be alone, only the create is sent, and the list only if the
/// number of the znode proves nothing. Otherwise both are sent together.
async fn enter_at_once(queue: &SessionQueue<'_>) -> Result<(Enqueued, Listing), Error> {
    let label = queue.shared.label()?;
    queue.open.znodes.abandoned.until_answered(queue.live).await;
    let last = queue.open.handoff.last_alone(&queue.shared.directory);
    let expects_alone = last.is_some_and(|last| last.was_known_alone);
    let (owner, node, asked) = create_contender(queue, label, expects_alone).await?;
    let czxid = node.stat.czxid;
    let me = queue.contender(queue.name(&node.path));
    let is_alone =
        |me: &Contender| last.is_some_and(|last| last.proves_alone(me.sequence(), czxid));
    let me = me.filter(is_alone).filter(|_| asked.is_some());
    let known_alone = me.is_some();
    let listing = match (asked, me) {
        (Some(asked), _) if !expects_alone => queue.listing_of(asked).await?,
        (Some(asked), Some(me)) => queue.listing_of_one(me, asked.data).await?,
        _ => queue.list().await?,
    };
    let entered = Enqueued {
        owner,
        czxid,
        known_alone,
    };
    Ok((entered, listing))
}

/// Creates the contender's znode, and asks for the queue.
///
/// A contender that `expects_alone` asks for the directory's data only.
///
/// After a create without a reply, looks for the znode. Nothing is asked for then.
async fn create_contender<'q>(
    queue: &'q SessionQueue<'q>,
    label: &str,
    expects_alone: bool,
) -> Result<(ZnodeOwner, Created, Option<QueueReads<'q>>), Error> {
    let shared = queue.shared;
    let identity = queue.live.identity();
    let mut pause_if_missing = Backoff::default().skip_first(1);
    let mut pause_if_unknown = Backoff::default();
    // A member that lags behind may not have shown the znodes of these creates. If the attempt is
    // dropped, they are looked for again.
    let mut in_doubt: Vec<ZnodeOwner> = Vec::new();
    loop {
        let (identity, acl) = access(queue, identity, label).await;
        let znode = queue.open.znodes.unnumbered(&shared.directory, identity);
        let mut owner = ZnodeOwner::new(shared.session.session_use(), znode);
        let path = || identity.path(queue.directory(), label);
        let counted = owner.znode.count(&path(), CreateMode::EphemeralSequential);
        counted.map_err(|error| queue.failed(error))?;
        let reply = create(queue, path(), acl.into_owned());
        // The server answers these reads after the create, so they show the new znode.
        let asked = queue.ask_for_queue(!expects_alone);
        let (node, asked) = match owner.created(reply).await {
            Ok(node) => (node, Some(asked)),
            Err(error) if error.is(Refusal::NoNode) => {
                create_directory(queue).await?;
                pause_if_missing.wait().await;
                continue;
            }
            Err(error) if may_have_created(&error) => {
                events::create_unknown(&path(), &error);
                match find_own(queue, &identity).await? {
                    Some(node) => (node, None),
                    None => {
                        in_doubt.push(owner);
                        pause_if_unknown.wait().await;
                        continue;
                    }
                }
            }
            Err(error) => return Err(Error::at_create(&path(), queue.live.id, error)),
        };
        for earlier in in_doubt {
            earlier.znode.note_gone();
        }
        owner.set_path(&node.path);
        return Ok((owner, node, asked));
    }
}

/// Sends the create of a contender's znode.
///
/// The reply owns the `ServerSession`, because it may outlive the attempt.
fn create(queue: &SessionQueue<'_>, path: String, acl: Vec<Acl>) -> Reply<'static, Created> {
    let server = queue.server.clone();
    let data = queue.shared.options.data.clone();
    let mode = CreateMode::EphemeralSequential;
    begun(async move {
        let data = data.as_deref().unwrap_or_default();
        server.create(&path, data, mode, &acl).await
    })
}

/// The [access](crate::hold::handoff::Handoff::access) to a contender's znode, by the options.
async fn access<'a>(
    queue: &SessionQueue<'a>,
    identity: Identity,
    label: &str,
) -> (Identity, Cow<'a, [Acl]>) {
    let (shared, handoff) = (queue.shared, &queue.open.handoff);
    let is_to_mark = shared.options.marks_release && shared.rule.hints().holds_only_first(label);
    let (server, directory, acl) = (&queue.server, queue.directory(), &*shared.options.acl);
    let access = handoff.access(server, directory, identity, acl, is_to_mark);
    access.await
}

/// Creates the directory, because a create of the contender's znode has found none.
async fn create_directory(queue: &SessionQueue<'_>) -> Result<(), Error> {
    let options = &queue.shared.options;
    let missing = MissingDirectory {
        path: &queue.shared.directory,
        data: &queue.shared.rule.directory_data(),
        kind: options.directories,
        acl: &options.acl,
    };
    missing.create(queue.live, &*queue.server).await
}

/// Looks for the znode of a create without a reply.
///
/// If the znode is not there after a commit, the create will never be applied.
async fn find_own(queue: &SessionQueue<'_>, identity: &Identity) -> Result<Option<Created>, Error> {
    let znodes = &queue.open.znodes;
    let own = znodes
        .searches
        .own_nodes(queue.live, queue.directory(), identity);
    let mut own = own.await.map_err(|error| queue.failed(error))?;
    own.sort_unstable_by_key(|node| node.stat.czxid);
    let mut own = own.into_iter();
    let created = own.next();
    // A server has applied two creates. The second znode would keep all later contenders waiting
    // until the session ends.
    for other in own {
        let znode = znodes.numbered(&other.path);
        drop(ZnodeOwner::new(queue.shared.session.session_use(), znode));
    }
    Ok(created)
}
