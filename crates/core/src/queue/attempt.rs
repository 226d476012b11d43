//! One attempt in one ZooKeeper session: enter, look, wait, look again, hold.

use std::borrow::Cow;
use std::pin::pin;

use futures_util::future::{FutureExt, ready};

use crate::contender::Identity;
use crate::error::Error;
use crate::events::attempt::Attempt;
use crate::hold::abandoned::may_exist;
use crate::hold::alone::Alone;
use crate::hold::grant::Grant;
use crate::hold::own_znode::Owned;
use crate::hold::sole_writer::written_by_owner_alone;
use crate::queue::directory::{MissingDirectory, UnknownCreates};
use crate::queue::look::{Look, could_win, look};
use crate::queue::other_waits::wait_otherwise;
use crate::queue::own_wait::OwnWait;
use crate::queue::place::{Entrant, Place};
use crate::queue::session_queue::{Listing, SessionQueue};
use crate::queue::wait::{Waited, Watches, wait_on};
use crate::retry::{Backoff, LONGEST};
use crate::server::ensemble::{Acl, CreateMode, Created, Reply};
use crate::server::error::Refusal;

/// Enters the queue, and waits in it until the rule says "hold".
pub(crate) async fn acquire(queue: &SessionQueue<'_>, attempt: &Attempt) -> Result<Grant, Error> {
    loop {
        let (place, listing) = enter(queue).await?;
        match hold(queue, attempt, place, listing).await? {
            Some(grant) => return Ok(grant),
            None => attempt.stepped_back(),
        }
    }
}

/// Waits until the rule says "hold". `None` if the contender steps back: its znode is deleted.
async fn hold(
    queue: &SessionQueue<'_>,
    attempt: &Attempt,
    mut place: Place,
    mut listing: Listing,
) -> Result<Option<Grant>, Error> {
    let mut watches = Watches::default();
    let mut own_wait = OwnWait::begin(queue.live.timeout());
    loop {
        match look(queue, &mut place, &mut watches, listing).await? {
            Look::Hold => match place.grant(queue, watches.own.take()) {
                Some(grant) => return Ok(Some(grant)),
                None => renew_lease(queue).await?,
            },
            Look::StepBack => {
                let left = place.leave().await;
                return left.map(|()| None).map_err(|error| queue.failed(error));
            }
            Look::Wait(on) => {
                on.tell(attempt);
                let warn = |waited| on.warn_of_own_wait(queue, &place, waited);
                let after = own_wait
                    .during(pin!(wait_otherwise(&mut watches, queue)), warn)
                    .await?;
                if let Some(after) = after {
                    listing = after;
                    continue;
                }
                let waited = own_wait
                    .during(pin!(wait_on(&mut watches, queue, &place, &on)), warn)
                    .await?;
                attempt.woken();
                if waited == Waited::Handoff {
                    // If the lease has lapsed, the waiter's znode may be deleted, so the queue is
                    // listed.
                    if let Some(grant) = place.grant(queue, watches.own.take()) {
                        return Ok(Some(grant));
                    }
                }
            }
        }
        listing = queue.list().await?;
    }
}

/// Enters the queue if the rule says "hold", and holds if it says so again.
pub(crate) async fn try_acquire(queue: &SessionQueue<'_>) -> Result<Option<Grant>, Error> {
    if !inherits(queue) {
        queue.open.abandoned.until_answered(queue.live).await;
        if !could_win(queue).await? {
            return Ok(None);
        }
    }
    let (mut place, mut listing) = enter(queue).await?;
    let mut watches = Watches::default();
    loop {
        match look(queue, &mut place, &mut watches, listing).await? {
            Look::Hold => match place.grant(queue, None) {
                Some(grant) => return Ok(Some(grant)),
                None => renew_lease(queue).await?,
            },
            Look::StepBack | Look::Wait(_) => return Ok(None),
        }
        listing = queue.list().await?;
    }
}

/// Waits until the lease may grant, because the session may have expired.
async fn renew_lease(queue: &SessionQueue<'_>) -> Result<(), Error> {
    let renewed = queue.live.until_may_grant(queue.directory());
    renewed.await.map_err(|error| queue.failed(error))
}

/// Creates the contender's znode, and lists the queue after that.
///
/// Does not list the queue if the znode's number proves that the contender is alone.
async fn enter(queue: &SessionQueue<'_>) -> Result<(Place, Listing), Error> {
    let shared = queue.shared;
    let label = shared.label()?;
    if let Some(place) = inherit(queue, label).await? {
        return Ok((place, queue.list().await?));
    }
    queue.open.abandoned.until_answered(queue.live).await;
    let mut entrant = Entrant::new(queue);
    let last = queue.open.last_alone.get(&shared.directory);
    // Assume that the fast path applies again. If it does not, list the queue after the create.
    let expects_alone = last.is_some_and(|last| last.was_known_alone);
    let mut missing_again = Backoff::after(1, LONGEST);
    let mut unknown = UnknownCreates::default();
    loop {
        let acl = access(queue, &mut entrant, label).await;
        entrant.list(queue);
        let path = queue.child(&entrant.identity().name(label));
        let sent = queue.live.now();
        let reply = create(queue, path.clone(), acl.into_owned());
        // The server answers these reads after the create, so they show the new znode.
        let after = match expects_alone {
            true => queue.ask_for_directory(),
            false => queue.ask_for_queue(),
        };
        let outcome = entrant.answered(reply).await;
        queue.live.heard_of_create(&outcome);
        let mut known_alone = false;
        let (created, after) = match outcome {
            Ok(created) => {
                known_alone = last.is_some_and(|last| proves_alone(queue, &last, &created));
                match expects_alone && !known_alone {
                    true => (created, queue.ask_for_queue()),
                    false => (created, after),
                }
            }
            Err(error) if error.is(Refusal::NoNode) => {
                create_directory(queue).await?;
                missing_again.wait().await;
                continue;
            }
            Err(error) if may_exist(&error) => {
                tracing::debug!(%path, %error, "looking for the znode of an unknown create");
                match find_own(queue, entrant.identity()).await? {
                    Some(created) => (created, queue.ask_for_queue()),
                    None => {
                        unknown.another(queue.live, &path, sent).await?;
                        continue;
                    }
                }
            }
            Err(error) => return Err(Error::at(path, queue.live.id(), error)),
        };
        let mut place = entrant.has_place(created);
        place.known_alone = known_alone;
        let listing = queue.answered(after, place.name()).await?;
        return Ok((place, listing));
    }
}

/// True if an earlier process has left a hold for the next attempt.
fn inherits(queue: &SessionQueue<'_>) -> bool {
    let inherited = &queue.open.inherited;
    inherited.has(&queue.shared.directory, &queue.shared.rule.label())
}

/// The place of a hold that an earlier process has left to this one.
async fn inherit(queue: &SessionQueue<'_>, label: &str) -> Result<Option<Place>, Error> {
    let inherited = &queue.open.inherited;
    let Some(hold) = inherited.take(&queue.shared.directory, label) else {
        return Ok(None);
    };
    let path = hold.znode.path().to_owned();
    let owned = Owned::new(queue.shared.session.kept_open(), hold.znode);
    // A list after a create shows what was there at the create. Here nothing is created.
    queue.catch_up().await?;
    match queue.read(&path).await? {
        Some((_, stat)) if stat.ephemeral_owner == queue.live.id().0 => {
            let node = Created { path, stat };
            Ok(Some(Place::inherited(owned, node, hold.token)))
        }
        _ => Err(Error::ContenderDeleted {
            path,
            session: queue.live.id(),
        }),
    }
}

/// Sends the create of a contender's znode. The reply keeps the server side open.
fn create(queue: &SessionQueue<'_>, path: String, acl: Vec<Acl>) -> Reply<'static, Created> {
    let server = queue.server.clone();
    let data = queue.shared.options.get_data().to_vec();
    let mode = CreateMode::EphemeralSequential;
    let mut reply = async move { server.create(&path, &data, mode, &acl).await }.boxed();
    // The first poll sends the request.
    let at_once = (&mut reply).now_or_never();
    at_once.map_or(reply, |reply| ready(reply).boxed())
}

/// The access control list of the contender's znode.
///
/// If it lets only the session write to the znode, the znode's name says so from now on.
async fn access<'a>(
    queue: &SessionQueue<'a>,
    entrant: &mut Entrant,
    label: &str,
) -> Cow<'a, [Acl]> {
    let options = &queue.shared.options;
    let open = Cow::Borrowed(options.acl.as_slice());
    if !options.marks_release || !queue.shared.rule.hints().holds_alone(label) {
        return open;
    }
    let (directory, identity) = (queue.directory(), entrant.identity());
    let sole_writer = &queue.open.sole_writer;
    let owner = sole_writer.identity(queue.live, &queue.server, directory, identity);
    match owner.await {
        Some(owner) => {
            entrant.mark();
            Cow::Owned(written_by_owner_alone(&options.acl, &owner))
        }
        None => open,
    }
}

/// Creates the directory, after a create of the contender's znode that was refused for want of it.
async fn create_directory(queue: &SessionQueue<'_>) -> Result<(), Error> {
    let options = &queue.shared.options;
    let missing = MissingDirectory {
        path: &queue.shared.directory,
        data: &queue.shared.rule.directory_data(),
        kind: options.directories,
        acl: &options.acl,
        chroot: queue.live.chroot(),
    };
    missing.create(queue.live, &*queue.server).await
}

/// Looks for the znode of a create without a reply.
///
/// If the znode is not there after a commit, it will never be.
async fn find_own(queue: &SessionQueue<'_>, identity: &Identity) -> Result<Option<Created>, Error> {
    let znodes = &queue.open.znodes;
    let own = znodes
        .searches
        .own_nodes(queue.live, queue.directory(), identity);
    let mut own = own.await.map_err(|error| queue.failed(error))?;
    own.sort_unstable_by_key(|node| node.stat.czxid);
    let mut own = own.into_iter();
    let created = own.next();
    if created.is_some() {
        queue.live.heard_of_create(&Ok(()));
    }
    // A server has applied two creates. The second znode would bar the queue for good.
    for other in own {
        let znode = znodes.unique(&other.path);
        drop(Owned::new(queue.shared.session.kept_open(), znode));
    }
    Ok(created)
}

/// True if the new znode's number proves that nobody else is in the queue.
fn proves_alone(queue: &SessionQueue<'_>, last: &Alone, created: &Created) -> bool {
    let name = created.path.rsplit('/').next().unwrap_or_default();
    let contender = queue.contender(name);
    contender.is_some_and(|contender| last.proves_alone(contender.sequence(), created.stat.czxid))
}
