//! A contender in the queue: what it decides by a list, and how it waits until the next one.

use std::future::{pending, poll_fn};
use std::task::Poll;

use futures_util::future::{BoxFuture, FutureExt};

use crate::contender::{Contender, Identity, are_of_one_session};
use crate::error::Error;
use crate::events::attempt::AttemptRecord;
use crate::hold::Hold;
use crate::hold::grant::Grant;
use crate::hold::handoff::{Alone, OwnWatch, grants_on_deletion, grants_on_mark};
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::ZnodeOwner;
use crate::hold_state::{FencingToken, LossReason};
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::Status;
use crate::queue::session_queue::{Listing, SessionQueue, UNCOUNTED, rule_is_broken};
use crate::retry::{Backoff, retry};
use crate::rule::{QueueView, Verdict};
use crate::server::ensemble::{EventType, Pending, Stat, Watch, WatchEvent};
use crate::server::error::{Refusal, ServerError};
use crate::sync::lock;

/// A contender whose znode exists.
///
/// If it is dropped, its znode is deleted in the background.
pub(crate) struct Enqueued<'q> {
    pub(crate) queue: &'q SessionQueue<'q>,
    pub(crate) owner: ZnodeOwner,
    /// The transaction that created the znode.
    pub(crate) czxid: i64,
    /// True if the znode's number proves that nobody else was in the queue.
    pub(crate) known_alone: bool,
    own_watch: OwnWatch,
    /// The watches on the contenders that it waits on, and on the directory's data, with their paths.
    watches: Vec<(String, Watch)>,
    /// Paces the looks if contenders leave before they are watched.
    look_pace: Backoff,
}

pub(crate) enum Decision {
    /// The contender holds. The value describes it, if its znode is the only child of the directory.
    Hold(Option<Alone>),
    /// The contender leaves the queue, and enters it again.
    StepBack,
    Wait(Predecessors),
}

/// The contenders that a waiter waits on.
pub(crate) struct Predecessors {
    contenders: Vec<Predecessor>,
    /// The number of contenders before the waiter.
    position: usize,
    /// The directory's data that the verdict is based on.
    data: Option<Vec<u8>>,
}

/// A contender that a waiter waits on.
struct Predecessor {
    path: String,
    /// The transaction that created its znode, if the order depends on it.
    ///
    /// Znodes at the end of the count have the same number. If a contender has gone, a later znode
    /// can get its name.
    czxid: Option<i64>,
    /// True if the waiter holds once this contender marks its release.
    grants_on_mark: bool,
    /// True if the waiter holds at any deletion of this contender.
    grants_on_deletion: bool,
}

impl<'q> Enqueued<'q> {
    pub(crate) fn new(queue: &'q SessionQueue<'q>, owner: ZnodeOwner, czxid: i64) -> Enqueued<'q> {
        Enqueued {
            queue,
            owner,
            czxid,
            known_alone: false,
            own_watch: OwnWatch::default(),
            watches: Vec::new(),
            look_pace: look_pace(),
        }
    }

    fn path(&self) -> &str {
        self.owner.znode.path()
    }

    pub(crate) fn name(&self) -> &str {
        self.queue.name(self.path())
    }

    // The watches are not `Sync`, so a shared reference would make the future not `Send`.
    /// Orders the contenders, and asks the rule about this one.
    pub(crate) async fn look(&mut self, listing: &mut Listing) -> Result<Decision, Error> {
        let (queue, rule) = (self.queue, &*self.queue.shared.rule);
        loop {
            refuse_other_recipes(queue, listing)?;
            let some_left = queue.put_in_order(listing).await?;
            // If contenders have left since the list, others may have come since, and this contender
            // may have to step back for one of them.
            if !some_left || !rule.looks_behind() {
                break;
            }
            *listing = queue.list_again().await?;
        }
        let contenders = &listing.contenders;
        let Some(me) = contenders.iter().position(|it| it.name() == self.name()) else {
            return Err(self.deleted().await);
        };
        let up_to_me = &contenders[..=me];
        match ask_rule(queue, contenders, me, listing.data.as_deref()).await? {
            Verdict::Hold => Ok(Decision::Hold((listing.children == 1).then(|| Alone {
                sequence: contenders[me].sequence(),
                czxid: self.czxid,
                was_known_alone: self.known_alone,
            }))),
            Verdict::StepBack if me + 1 < contenders.len() => Ok(Decision::StepBack),
            Verdict::Wait { on } if !on.is_empty() && on.iter().all(|&place| place < me) => {
                let awaited = |place: usize| Predecessor {
                    path: queue.child(contenders[place].name()),
                    czxid: contenders[place].czxid(),
                    grants_on_mark: grants_on_mark(rule, up_to_me, place),
                    grants_on_deletion: grants_on_deletion(rule, up_to_me, place),
                };
                Ok(Decision::Wait(Predecessors {
                    contenders: on.into_iter().map(awaited).collect(),
                    position: me,
                    data: listing.data.take(),
                }))
            }
            Verdict::Wait { .. } | Verdict::StepBack => {
                let problem = "waits on no contender, or on a contender that is not before it, or \
                               steps back for none behind it";
                Err(rule_is_broken(&queue.shared.label, problem).into())
            }
        }
    }

    /// Holds. The lease may grant after this number of lapses.
    pub(crate) fn hold(
        mut self,
        attempt: &AttemptRecord,
        epoch: LeaseEpoch,
        alone: Option<Alone>,
    ) -> Hold {
        let (queue, znode) = (self.queue, self.owner.znode.clone());
        let loss_watch = self.own_watch.take();
        if let Some(turn) = lock(queue.turn).take() {
            // Before a loss of the hold can be noticed, which passes the turn on.
            znode.keep_turn(turn);
        }
        let (handoff, directory) = (&queue.open.handoff, &queue.shared.directory);
        handoff.begin_hold(&znode, directory, loss_watch.is_some(), alone);
        let token = FencingToken::from(self.czxid);
        let mut grant = Grant::new(znode, token, epoch, attempt.acquired(token));
        grant.rule = Some(queue.shared.rule.clone());
        grant.limit(queue.shared.options.max_hold);
        Hold::begin(grant, self.owner, queue.open, loss_watch)
    }

    /// Waits until one of the predecessors may have left, or the directory's data has changed.
    ///
    /// If no contender is left before this one, it holds: a grant has begun. `None` if it must list
    /// the queue.
    pub(crate) async fn wait(&mut self, on: &Predecessors) -> Result<Option<LeaseEpoch>, Error> {
        let directory = self.queue.directory();
        self.watches
            .retain(|(path, _)| path == directory || on.find(path).is_some());
        loop {
            let (path, event) = match self.set_watches(on).await? {
                Some(missed) => {
                    self.look_pace.wait().await;
                    missed
                }
                None => {
                    self.look_pace = look_pace();
                    self.next_event().await?
                }
            };
            match (event, on.find(&path)) {
                (WatchEvent::Fired(EventType::NodeDeleted), Some(predecessor))
                    if predecessor.grants_on_deletion =>
                {
                    break;
                }
                (WatchEvent::Fired(EventType::NodeDataChanged), Some(predecessor))
                    if predecessor.grants_on_mark =>
                {
                    break;
                }
                // The next loop sets the watch again. Its read shows if the contender has left.
                (WatchEvent::Fired(EventType::NodeDataChanged), Some(_)) => {}
                _ => return Ok(None),
            }
        }
        let (live, server) = (self.queue.live, &self.queue.server);
        match self.own_watch.begin_grant(live, server) {
            Ok(granted) => Ok(granted),
            Err(loss) => Err(self.lost(loss).await),
        }
    }

    /// Sets the missing watches of a waiter that waits on these contenders.
    ///
    /// The result is an event that a watch has missed, and `None` if all watches are set.
    async fn set_watches(
        &mut self,
        on: &Predecessors,
    ) -> Result<Option<(String, WatchEvent)>, Error> {
        let (queue, server) = (self.queue, &self.queue.server);
        let wants_own = !self.own_watch.is_set();
        let reads_directory = queue.shared.rule.reads_directory();
        let directory = reads_directory.then(|| queue.directory());
        let missing: Vec<&str> = directory
            .into_iter()
            .chain(on.contenders.iter().map(|it| it.path.as_str()))
            .filter(|path| !self.watches.iter().any(|(watched, _)| watched == path))
            .collect();
        if wants_own || !missing.is_empty() {
            self.own_watch.note_request(server);
        }
        let own = self.owner.znode.clone();
        let own = wants_own.then(|| server.get_and_watch(own.path()));
        let reads: Vec<Read> = missing.iter().map(|it| server.get_and_watch(it)).collect();

        let mut missed = match own {
            Some(own) => self.await_own_watch(own).await?,
            None => None,
        };
        self.watches.reserve_exact(missing.len());
        for (path, read) in missing.into_iter().zip(reads) {
            let mut is_missed = |event| missed = Some((path.to_owned(), event));
            match read.await {
                Ok((data, stat, watch)) => {
                    if !on.is_as_listed(path, data, &stat) {
                        is_missed(WatchEvent::Unwatched);
                    }
                    self.watches.push((path.to_owned(), watch));
                }
                Err(error) if error.is(Refusal::NoNode) => {
                    is_missed(WatchEvent::Fired(EventType::NodeDeleted))
                }
                Err(ServerError::OutcomeUnknown(_)) => is_missed(WatchEvent::Unwatched),
                Err(error) => return Err(queue.not_read(path, error)),
            }
        }
        Ok(missed)
    }

    /// Keeps the watch on the own znode. The result is that of [`set_watches`](Self::set_watches).
    async fn await_own_watch(&mut self, read: Read) -> Result<Option<(String, WatchEvent)>, Error> {
        let znode = self.owner.znode.clone();
        match read.await {
            Ok((_, stat, watch)) => {
                if let Some(loss) = znode.loss(&stat) {
                    return Err(self.lost(loss).await);
                }
                let server = self.queue.server.clone();
                self.own_watch
                    .set(LossWatch::new(znode, server, Some(watch)));
                Ok(None)
            }
            Err(error) if error.is(Refusal::NoNode) => Err(self.deleted().await),
            Err(ServerError::OutcomeUnknown(_)) => {
                Ok(Some((znode.path().to_owned(), WatchEvent::Unwatched)))
            }
            Err(error) => Err(self.queue.not_read(znode.path(), error)),
        }
    }

    /// The next event of a watch, and the path of its znode.
    async fn next_event(&mut self) -> Result<(String, WatchEvent), Error> {
        let other = poll_fn(|context| {
            let mut polled = self.watches.iter_mut().map(|it| it.1.poll_unpin(context));
            let woken = polled.by_ref().enumerate().find(|it| it.1.is_ready());
            woken.map_or(Poll::Pending, |(index, event)| event.map(|it| (it, index)))
        });
        let woken = tokio::select! {
            // If the waiter's own deletion and another's are both known, its own counts.
            biased;
            loss = self.own_watch.lost() => Err(loss),
            woken = other => Ok(woken),
        };
        let (event, index) = match woken {
            Ok(woken) => woken,
            Err(loss) => return Err(self.lost(loss).await),
        };
        let (path, _) = self.watches.swap_remove(index);
        Ok((path, event))
    }

    /// The error of a waiter that has lost its znode.
    async fn lost(&mut self, loss: LossReason) -> Error {
        match loss {
            LossReason::Written => Error::ContenderWritten {
                path: self.path().to_owned(),
                session: self.queue.live.id,
            },
            _ => self.deleted().await,
        }
    }

    /// The error of a contender whose znode is deleted.
    ///
    /// Its session may have ended, and deleted the znode. If so, no answer comes, and the attempt
    /// fails with the end of the session.
    fn deleted(&self) -> BoxFuture<'q, Error> {
        let (live, path) = (self.queue.live, self.path().to_owned());
        let session = live.id;
        async move {
            let ask = || async { live.server()?.sync("/").await };
            let may_pass = |error: &ServerError| !matches!(error, ServerError::SessionOver(_));
            if let Err(ServerError::SessionOver(end)) = retry(may_pass, ask).await {
                // The caller ends with the session.
                live.set_status(Status::Ended(end));
                return pending().await;
            }
            Error::ContenderDeleted { path, session }
        }
        .boxed()
    }
}

type Read = Pending<(Vec<u8>, Stat, Watch)>;

/// Contenders may leave before they are watched, a few times in a row, without a pause.
fn look_pace() -> Backoff {
    Backoff::default().skip_first(4)
}

impl Predecessors {
    fn find(&self, path: &str) -> Option<&Predecessor> {
        self.contenders.iter().find(|it| it.path == path)
    }

    /// True if the list has shown this znode, or the directory with this data.
    fn is_as_listed(&self, path: &str, data: Vec<u8>, stat: &Stat) -> bool {
        match self.find(path) {
            Some(it) => it.czxid.is_none_or(|czxid| czxid == stat.czxid),
            None => Some(data) == self.data,
        }
    }

    /// Reports whom the attempt of this contender waits behind: the last of the contenders. Warns
    /// if its task holds by one of them.
    pub(crate) fn report(&self, attempt: &AttemptRecord, me: &Enqueued<'_>) {
        let queue = me.queue;
        if let Some(last) = self.contenders.last() {
            attempt.waits(queue.name(&last.path), self.position);
        }
        // The session may hold a hundred thousand, so they are asked for contenders of it only.
        let awaited = self.contenders.iter().map(|it| it.path.as_str());
        for path in awaited.filter(|path| are_of_one_session(queue.name(path), me.name())) {
            queue.open.warn_of_own_wait(me.path(), path);
        }
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
    let rule = &*queue.shared.rule;
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
pub(crate) async fn would_hold_at_once(queue: &SessionQueue<'_>) -> Result<bool, Error> {
    let mut listing = queue.list().await?;
    refuse_other_recipes(queue, &listing)?;
    queue.put_in_order(&mut listing).await?;
    let contenders = &listing.contenders;
    let next = contenders
        .last()
        .map_or(0.into(), |last| last.sequence().next());
    let label = &*queue.shared.label;
    let name = format!("{}{next}", Identity::from_random_bits(0).name(label));
    let newcomer = queue.contender(&name);
    let newcomer = newcomer.ok_or_else(|| rule_is_broken(label, UNCOUNTED))?;
    let view = QueueView::new(contenders, &newcomer, listing.data.as_deref());
    Ok(queue.shared.rule.decide(&view)? == Verdict::Hold)
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

#[cfg(test)]
#[path = "../../tests/unit/wait.rs"]
mod tests;
