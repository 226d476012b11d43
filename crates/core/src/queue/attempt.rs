//! One attempt in one ZooKeeper session: enter, look, wait, look again, hold.

use std::borrow::Cow;

use crate::contender::Identity;
use crate::error::Error;
use crate::events::TARGET;
use crate::events::attempt::AttemptRecord;
use crate::hold::Hold;
use crate::hold::handoff::{Alone, KnownDirectory};
use crate::hold::own_znode::{ZnodeOwner, may_have_created};
use crate::live::lease::LeaseEpoch;
use crate::queue::directory::Directory;
use crate::queue::other_waits::OtherWait;
use crate::queue::session_queue::{Listing, QueueReads, SessionQueue};
use crate::queue::wait::{Decision, Enqueued, would_hold_at_once};
use crate::retry::Backoff;
use crate::server::ensemble::{Acl, CreateMode, Created};
use crate::server::error::ServerError;

/// Enters the queue, and waits in it until the rule says "hold".
pub(crate) async fn until_granted(
    queue: &SessionQueue<'_>,
    attempt: &AttemptRecord,
) -> Result<Hold, Error> {
    loop {
        queue.live.until_may_enter(queue.directory()).await?;
        let permit = match &queue.shared.options.entries {
            Some(permits) => permits.acquire().await.ok(),
            None => None,
        };
        let (mut enqueued, listing) = enter(queue).await?;
        drop(permit);
        match until_it_holds(&mut enqueued, listing, attempt, true).await? {
            Some((epoch, alone)) => return Ok(enqueued.hold(attempt, epoch, alone)),
            None => attempt.stepped_back(),
        }
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
    let (mut enqueued, listing) = enter(queue).await?;
    let granted = until_it_holds(&mut enqueued, listing, attempt, false).await?;
    Ok(granted.map(|(epoch, alone)| enqueued.hold(attempt, epoch, alone)))
}

/// Looks until the rule says "hold", and begins the grant. `None` if the contender leaves the queue:
/// it steps back, or would have to wait and `may_wait` is false.
///
/// The futures of what happens rarely are boxed, because all waiters would keep room for them.
async fn until_it_holds(
    enqueued: &mut Enqueued<'_>,
    mut listing: Listing,
    attempt: &AttemptRecord,
    may_wait: bool,
) -> Result<Option<(LeaseEpoch, Option<Alone>)>, Error> {
    let queue = enqueued.queue;
    let mut other_wait = OtherWait::new(queue.shared.options.strategy);
    let mut lease_wait = None;
    loop {
        let decision = enqueued.look(&mut listing).await?;
        // A waiter keeps the names of all others no longer than it looks at them.
        drop(std::mem::take(&mut listing));
        match decision {
            Decision::Hold(alone) => match queue.begin_grant() {
                Some(epoch) => return Ok(Some((epoch, alone))),
                // The session may have expired. After a while without a lease the attempt fails:
                // the contender would bar all others.
                None => {
                    let path = queue.directory();
                    queue.live.until_may_grant(path, &mut lease_wait).await?;
                }
            },
            Decision::StepBack | Decision::Wait(_) if !may_wait => return Ok(None),
            Decision::StepBack => {
                let znode = &enqueued.owner.znode;
                let deleted = Box::pin(znode.delete()).await;
                deleted.map_err(|error| Error::at_delete(znode.path(), queue.live.id, error))?;
                return Ok(None);
            }
            Decision::Wait(on) => {
                lease_wait = None;
                on.report(attempt, enqueued);
                if let Some(other_wait) = &mut other_wait {
                    listing = Box::pin(other_wait.wait(queue)).await?;
                    attempt.woken();
                    continue;
                }
                let granted = enqueued.wait(&on).await?;
                attempt.woken();
                if let Some(epoch) = granted {
                    return Ok(Some((epoch, None)));
                }
            }
        }
        listing = queue.list_again().await?;
    }
}

/// Creates the contender's znode, and lists the queue after that.
///
/// If the last contender was known to be alone, only the create is sent, and the list only if the
/// number of the znode proves nothing. Otherwise both are sent together.
async fn enter<'q>(queue: &'q SessionQueue<'q>) -> Result<(Enqueued<'q>, Listing), Error> {
    queue.open.znodes.abandoned.until_answered(queue.live).await;
    let known = queue.open.handoff.enter(&queue.shared.directory);
    let last = known.last;
    let (mut enqueued, mut reads) = create_contender(queue, known).await?;
    let me = queue.contender(enqueued.name());
    enqueued.known_alone = (last.zip(me.as_ref()))
        .is_some_and(|(last, me)| last.proves_alone(me.sequence(), enqueued.czxid));
    if reads.names.is_none() && !enqueued.known_alone {
        reads = queue.ask_for_queue(true);
    }
    let listing = queue.listing_of(reads, me).await?;
    Ok((enqueued, listing))
}

/// Creates the contender's znode, and asks for the directory's data, and for the names unless the
/// last contender was known to be alone.
///
/// After a create without a reply, looks for the znode. The names are then wanted in any case.
async fn create_contender<'q>(
    queue: &'q SessionQueue<'q>,
    known: KnownDirectory,
) -> Result<(Enqueued<'q>, QueueReads), Error> {
    let wants_names = !known.last.is_some_and(|last| last.was_known_alone);
    let (shared, server) = (queue.shared, &*queue.server);
    let (rule, options) = (&*shared.rule, &shared.options);
    let data = options.get_data();
    let mut directory =
        Directory::new(&shared.directory, Some(rule), options, known.may_be_missing);
    let identity = queue.live.identity();
    let mut pause_if_unknown = Backoff::default();
    // A member that lags behind may not have shown the znodes of these creates. If the attempt is
    // dropped, they are looked for again.
    let mut in_doubt: Vec<ZnodeOwner> = Vec::new();
    loop {
        let sent = directory.send_create(server);
        let (identity, acl) = access(queue, identity, &shared.label).await;
        let znode = queue.open.znodes.unnumbered(&shared.directory, identity);
        let mut owner = ZnodeOwner::new(shared.session.session_use(), znode);
        let path = identity.path(queue.directory(), &shared.label);
        let mode = CreateMode::EphemeralSequential;
        let counted = owner.znode.count(&path, mode);
        counted.map_err(|error| queue.failed(error))?;
        let reply = queue.server.create(path, data, mode, acl);
        // The server answers these reads after the create, so they show the new znode.
        let reads = queue.ask_for_queue(wants_names);
        let reply = owner.created(reply).await;
        if directory
            .was_missing(queue.open, server, sent, &reply)
            .await?
        {
            continue;
        }
        let (node, reads) = match reply {
            Ok(node) => (node, reads),
            Err(error) if may_have_created(&error) => {
                match Box::pin(find_own(queue, &identity, &error)).await? {
                    Some(node) => (node, queue.ask_for_queue(true)),
                    None => {
                        in_doubt.push(owner);
                        pause_if_unknown.wait().await;
                        continue;
                    }
                }
            }
            Err(error) => {
                let path = identity.path(queue.directory(), &shared.label);
                return Err(Error::at_create(&path, queue.live.id, error));
            }
        };
        for earlier in in_doubt {
            earlier.znode.note_gone();
        }
        owner.set_path(&node.path);
        return Ok((Enqueued::new(queue, owner, node.stat.czxid), reads));
    }
}

/// The [access](crate::hold::handoff::Handoff::access) to a contender's znode, by the options.
async fn access<'a>(
    queue: &SessionQueue<'a>,
    identity: Identity,
    label: &str,
) -> (Identity, Cow<'a, [Acl]>) {
    let (shared, handoff) = (queue.shared, &queue.open.handoff);
    let is_to_mark = shared.options.marks_release && shared.rule.holds_only_first(label);
    let (server, directory, acl) = (&queue.server, queue.directory(), &*shared.options.acl);
    let access = handoff.access(server, directory, identity, acl, is_to_mark);
    access.await
}

/// Looks for the znode of a create without a reply.
///
/// If the znode is not there after a commit, the create will never be applied.
async fn find_own(
    queue: &SessionQueue<'_>,
    identity: &Identity,
    error: &ServerError,
) -> Result<Option<Created>, Error> {
    let path = identity.path(queue.directory(), &queue.shared.label);
    tracing::debug!(target: TARGET, path, %error, "looking for the znode of an unknown create");
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
