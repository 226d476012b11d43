//! One attempt in one ZooKeeper session: enter, look, wait, look again, hold.

use std::mem::take;

use tokio::sync::Semaphore;

use crate::contender::{Contender, Identity, Sequence};
use crate::error::Error;
use crate::events::attempt::AttemptRecord;
use crate::hold::Hold;
use crate::hold::grant::Terms;
use crate::hold::handoff::Alone;
use crate::hold::own_znode::{ContenderName, CreateOutcome, ZnodeOwner};
use crate::hold_state::FencingToken;
use crate::live::lease::LeaseEpoch;
use crate::queue::directory::MissingDirectory;
use crate::queue::other_waits::OtherWait;
use crate::queue::session_queue::{Listing, SessionQueue, UNCOUNTED, rule_is_broken};
use crate::queue::wait::{Predecessors, Watches, deleted};
use crate::retry::Backoff;
use crate::rule::{QueueView, Verdict};

/// Enters the queue, and waits in it until the rule says "hold".
pub(crate) async fn until_granted(
    queue: &SessionQueue<'_>,
    attempt: &AttemptRecord,
) -> Result<Hold, Error> {
    loop {
        queue.live.until_may_enter(queue.directory()).await?;
        let permits = queue.setup.options.entries.as_deref();
        let permit = match permits.map(Semaphore::acquire) {
            Some(permit) => permit.await.ok(),
            None => None,
        };
        let (mut enqueued, listing) = enter(queue).await?;
        drop(permit);
        match until_it_may_hold(&mut enqueued, listing, attempt, true).await? {
            Some(epoch) => return Ok(enqueued.hold(attempt, epoch)),
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
    let epoch = until_it_may_hold(&mut enqueued, listing, attempt, false).await?;
    Ok(epoch.map(|epoch| enqueued.hold(attempt, epoch)))
}

/// A contender whose znode exists.
///
/// If it is dropped, its znode is deleted in the background.
struct Enqueued<'q> {
    queue: &'q SessionQueue<'q>,
    owner: ZnodeOwner,
    /// The transaction that created the znode.
    czxid: i64,
    /// The connection that carried the create and its reply. `None` if no reply came.
    created_over: Option<u64>,
    /// The connection over which the queue was last read, or an earlier one.
    read_over: Option<u64>,
    /// The contender's number, if its znode was the only child of the directory when it last looked.
    /// True if the number itself has proven that.
    alone: Option<(Sequence, bool)>,
    watches: Watches,
}

/// What a contender does next, by the rule.
enum Decision {
    Hold,
    /// The contender leaves the queue, and enters it again.
    StepBack,
    Wait(Predecessors),
}

/// Waits until the rule says "hold", and the lease allows it. `None` if the contender leaves the
/// queue: it steps back, or would have to wait and `may_wait` is false.
///
/// The futures of what happens rarely are boxed, because all waiters would keep room for them.
async fn until_it_may_hold(
    enqueued: &mut Enqueued<'_>,
    mut listing: Listing,
    attempt: &AttemptRecord,
    may_wait: bool,
) -> Result<Option<LeaseEpoch>, Error> {
    let queue = enqueued.queue;
    let (server, live) = (&queue.server, queue.live);
    let mut other_wait = OtherWait::new(queue.setup.options.strategy);
    let mut lease_wait = None;
    loop {
        let decision = enqueued.look(&mut listing).await?;
        // A waiter keeps the names of all others no longer than it looks at them.
        drop(take(&mut listing));
        match decision {
            Decision::Hold => {
                // Servers that have lost their data may have lost the contender, too.
                let is_stale = server.has_reconnected_since(enqueued.read_over);
                let granted = (!is_stale).then(|| live.grant_epoch()).flatten();
                if granted.is_some() {
                    return Ok(granted);
                }
                // The session may have expired. After a while without a lease the attempt fails: the
                // contender would bar all others.
                let path = queue.directory();
                live.until_may_grant(path, &mut lease_wait).await?;
            }
            Decision::StepBack | Decision::Wait(_) if !may_wait => return Ok(None),
            Decision::StepBack => {
                let znode = &enqueued.owner.znode;
                let deleted = Box::pin(znode.delete()).await;
                deleted.map_err(|error| Error::at_delete(znode.path(), live.id, error))?;
                return Ok(None);
            }
            Decision::Wait(on) => {
                lease_wait = None;
                let znode = &enqueued.owner.znode;
                on.report(attempt, queue, znode);
                if let Some(other_wait) = &mut other_wait {
                    listing = Box::pin(other_wait.wait(queue)).await?;
                    attempt.woken();
                    continue;
                }
                let granted = enqueued.watches.wait(queue, znode, &on).await?;
                attempt.woken();
                if granted.is_some() {
                    return Ok(granted);
                }
            }
        }
        listing = enqueued.list_again().await?;
    }
}

/// Creates the contender's znode, and sees who else is in the queue.
///
/// The queue is listed after the create, unless the number of the znode proves that nobody else is
/// in it. The list is sent together with the create, unless such a proof is expected.
async fn enter<'q>(queue: &'q SessionQueue<'q>) -> Result<(Enqueued<'q>, Listing), Error> {
    let znodes = &queue.open.znodes;
    znodes.abandoned.until_answered(queue.live).await;
    let known = znodes.handoff.take_known(&queue.setup.directory);
    let expects_proof = known.last.is_some_and(|last| last.by_number);
    let reads = || {
        let names = (!expects_proof).then(|| queue.send_list());
        (names, queue.send_read())
    };
    let (mut enqueued, (names, data)) =
        create_contender(queue, known.may_be_missing, &reads).await?;
    if let (Some(last), Some(me)) = (known.last, queue.parse(enqueued.name())) {
        let (czxid, created_over) = (enqueued.czxid, enqueued.created_over);
        if last.proves_alone(me.sequence(), czxid, created_over) {
            enqueued.alone = Some((me.sequence(), true));
            let listing = queue.listing_of_one(me, data).await?;
            return Ok((enqueued, listing));
        }
    }
    let listing = match names {
        Some(names) => queue.listing_of(names, data).await?,
        None => queue.list().await?,
    };
    Ok((enqueued, listing))
}

/// Creates the contender's znode, and the directory if it is missing.
///
/// `reads` sends the reads of the directory, which the server answers after the create. The futures
/// of what happens rarely are boxed, because all attempts would keep room for them.
async fn create_contender<'q, R>(
    queue: &'q SessionQueue<'q>,
    may_be_missing: bool,
    reads: &impl Fn() -> R,
) -> Result<(Enqueued<'q>, R), Error> {
    let SessionQueue {
        setup,
        open,
        live,
        server,
    } = queue;
    let (rule, options, path) = (&*setup.rule, &setup.options, setup.directory.as_str());
    let mut directory =
        MissingDirectory::new(&setup.directory, Some(rule), options, may_be_missing);
    let is_to_mark = options.marks_release && rule.holds_only_first(&setup.label);
    let identity = live.identity();
    let mut pause_if_unknown = Backoff::default();
    // A member that lags behind may not have shown the znodes of these creates. If the attempt is
    // dropped, they are looked for again.
    let mut in_doubt: Vec<ZnodeOwner> = Vec::new();
    loop {
        directory.send_create(server);
        let handoff = &open.znodes.handoff;
        let access = handoff.access(server, path, identity, &options.acl, is_to_mark);
        let (identity, acl) = access.await;
        let name = ContenderName::new(&setup.directory, identity);
        let mut owner = ZnodeOwner::new(setup.session.session_use(), open.znodes.contender(name));
        let path = || identity.path(path, &setup.label);
        // Before the create: the number of the znode may prove that nobody else is in the queue.
        let read_over = server.connection();
        let create = owner.create(server, path, options.get_data(), acl, reads);
        let (outcome, sent) = create.await?;
        let (czxid, created_over) = match outcome {
            CreateOutcome::Created { stat, connection } => (stat.czxid, connection),
            CreateOutcome::MissingDirectory => {
                Box::pin(directory.note_missing(open, server)).await?;
                continue;
            }
            CreateOutcome::NotCreated | CreateOutcome::Taken => {
                in_doubt.push(owner);
                Box::pin(pause_if_unknown.wait()).await;
                continue;
            }
        };
        for earlier in in_doubt {
            earlier.znode.note_gone();
        }
        directory.note_exists(open).await;
        let enqueued = Enqueued {
            queue,
            owner,
            czxid,
            created_over,
            read_over,
            alone: None,
            watches: Watches::default(),
        };
        return Ok((enqueued, sent));
    }
}

impl Enqueued<'_> {
    fn name(&self) -> &str {
        self.queue.name(self.owner.znode.path())
    }

    /// Lists the queue again, and notes the connection before.
    async fn list_again(&mut self) -> Result<Listing, Error> {
        self.read_over = self.queue.server.connection();
        self.queue.list_again().await
    }

    // The watches are not `Sync`, so a shared reference would make the future not `Send`.
    /// Orders the contenders, and asks the rule about this one.
    async fn look(&mut self, listing: &mut Listing) -> Result<Decision, Error> {
        let (queue, rule) = (self.queue, &*self.queue.setup.rule);
        loop {
            refuse_other_recipes(queue, listing)?;
            let some_left = queue.put_in_order(listing).await?;
            // If contenders have left since the list, others may have come since, and this contender
            // may have to step back for one of them.
            if !some_left || !rule.looks_behind() {
                break;
            }
            *listing = self.list_again().await?;
        }
        let contenders = &listing.contenders;
        let name = self.name();
        let Some(me) = contenders.iter().position(|it| it.name() == name) else {
            return Err(deleted(queue, self.owner.znode.path()).await);
        };
        let by_number = self.alone.is_some_and(|(_, by_number)| by_number);
        self.alone = (listing.children == 1).then(|| (contenders[me].sequence(), by_number));
        match ask_rule(queue, contenders, me, listing.data.as_deref()).await? {
            Verdict::Hold => Ok(Decision::Hold),
            Verdict::StepBack if me + 1 < contenders.len() => Ok(Decision::StepBack),
            Verdict::Wait { on } if !on.is_empty() && on.iter().all(|&place| place < me) => {
                let on = Predecessors::new(queue, &contenders[..=me], on, listing.data.take());
                Ok(Decision::Wait(on))
            }
            Verdict::Wait { .. } | Verdict::StepBack => {
                let problem = "waits on no contender, or on a contender that is not before it, or \
                               steps back for none behind it";
                Err(rule_is_broken(&queue.setup.label, problem).into())
            }
        }
    }

    /// Holds. The lease may grant after this number of lapses.
    fn hold(mut self, attempt: &AttemptRecord, epoch: LeaseEpoch) -> Hold {
        let (setup, znode) = (self.queue.setup, &self.owner.znode);
        if let Some((sequence, by_number)) = self.alone {
            let (czxid, connection) = (self.czxid, self.read_over);
            znode.note_alone(Alone {
                sequence,
                czxid,
                connection,
                by_number,
            });
        }
        let token = FencingToken::from(self.czxid);
        let terms = Terms {
            token,
            epoch,
            deadline: setup.options.deadline(self.queue.live.now()),
            rule: Some(setup.rule.clone()),
        };
        let (record, loss_watch) = (attempt.acquired(token), self.watches.take_own());
        Hold::begin(self.owner, self.queue.open, terms, record, loss_watch)
    }
}

/// Asks the rule about the contender at this place. If it would hold, and its rule looks behind, asks
/// again with the contenders behind it.
async fn ask_rule(
    queue: &SessionQueue<'_>,
    contenders: &[Contender],
    place: usize,
    data: Option<&[u8]>,
) -> Result<Verdict, Error> {
    let rule = &*queue.setup.rule;
    let (before, me) = (&contenders[..place], &contenders[place]);
    let verdict = rule.decide(&QueueView::new(before, me, data))?;
    let behind = &contenders[place + 1..];
    if verdict != Verdict::Hold || !rule.looks_behind() || behind.is_empty() {
        return Ok(verdict);
    }
    // The data is not older than the list. If it names a contender that came after the list, this
    // contender holds. The election then resigns for that contender.
    let read = match data {
        Some(_) => None,
        None => queue.read_directory().await?,
    };
    let view = QueueView::new(before, me, data.or(read.as_deref()));
    Ok(rule.decide(&view.with_behind(behind))?)
}

/// True if a new contender would hold at once, by one list.
async fn would_hold_at_once(queue: &SessionQueue<'_>) -> Result<bool, Error> {
    let mut listing = queue.list().await?;
    refuse_other_recipes(queue, &listing)?;
    queue.put_in_order(&mut listing).await?;
    let contenders = &listing.contenders;
    let next = contenders
        .last()
        .map_or(0.into(), |last| last.sequence().next());
    let label = &*queue.setup.label;
    let name = format!("{}{next}", Identity::from_random_bits(0).name(label));
    let newcomer = queue.parse(&name);
    let newcomer = newcomer.ok_or_else(|| rule_is_broken(label, UNCOUNTED))?;
    let view = QueueView::new(contenders, &newcomer, listing.data.as_deref());
    Ok(queue.setup.rule.decide(&view)? == Verdict::Hold)
}

/// Refuses a queue that contains contenders of another recipe.
///
/// Each of two recipes under one path grants without regard to the other.
fn refuse_other_recipes(queue: &SessionQueue<'_>, listing: &Listing) -> Result<(), Error> {
    match &listing.other_recipe {
        None => Ok(()),
        Some((name, recipe)) => Err(Error::OtherRecipe {
            path: queue.directory().to_owned(),
            child: name.clone(),
            recipe,
        }),
    }
}
