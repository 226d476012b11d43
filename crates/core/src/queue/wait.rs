//! A look at the queue, and the wait until the next one: what to wait on, the watches, how they are
//! set, and what wakes the waiter.

use std::collections::BTreeMap;

use crate::contender::{Contender, Identity, Sequence, are_of_one_session};
use crate::error::Error;
use crate::events::attempt::AttemptRecord;
use crate::hold::handoff::{OwnWatch, grants_on_deletion, grants_on_mark};
use crate::hold::loss_watch::{LossWatch, Watched, ZnodeLoss};
use crate::hold::own_znode::Znode;
use crate::invalid_input::InvalidInput;
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::{LiveSession, Status};
use crate::queue::session_queue::{Listing, SessionQueue, UNCOUNTED, rule_is_broken};
use crate::retry::Backoff;
use crate::rule::{QueueView, Rule, Verdict};
use crate::server::ensemble::{Event, Reply, Stat, Watch};
use crate::server::error::{Refusal, ServerError};
use crate::sync::or_pending;
use futures_util::future::select_all;

pub(crate) enum Decision {
    /// The contender holds. `only` is its number if its znode is the only child of the directory.
    Hold {
        only: Option<Sequence>,
    },
    /// The contender leaves the queue, and enters it again.
    StepBack,
    Wait(Predecessors),
}

/// Orders the contenders, and asks the rule about the contender with this znode.
pub(crate) async fn look(
    queue: &SessionQueue<'_>,
    own: &Znode,
    mut listing: Listing,
) -> Result<Decision, Error> {
    let rule = &*queue.shared.rule;
    let (contenders, data, me, is_only_child) = loop {
        refuse_other_recipes(queue, &listing)?;
        let is_only_child = listing.children == 1;
        let ordered = queue.in_order(listing).await?;
        let mut names = ordered.contenders.iter().map(Contender::name);
        let own_name = queue.name(own.path());
        let me = names.position(|it| it == own_name);
        let Some(me) = me else {
            return Err(deleted(queue, own.path()).await);
        };
        // If contenders have left since the list, others may have come since, and this contender
        // may have to step back for one of them.
        if !ordered.some_left || !rule.looks_behind() {
            break (ordered.contenders, ordered.data, me, is_only_child);
        }
        listing = queue.list_again().await?;
    };
    match ask_rule(queue, &contenders, me, data.as_deref()).await? {
        Verdict::StepBack if me + 1 < contenders.len() => Ok(Decision::StepBack),
        Verdict::Hold => Ok(Decision::Hold {
            only: is_only_child.then(|| contenders[me].sequence()),
        }),
        Verdict::Wait { on } if !on.is_empty() && on.iter().all(|&place| place < me) => {
            let awaited = |place: usize| Predecessor {
                name: contenders[place].name().to_owned(),
                czxid: contenders[place].czxid(),
                grants_on_mark: grants_on_mark(rule, &contenders[..=me], place),
                grants_on_deletion: grants_on_deletion(rule, &contenders[..=me], place),
            };
            let contenders = on.into_iter().map(awaited).collect();
            Ok(Decision::Wait(Predecessors {
                contenders,
                position: me,
                data,
            }))
        }
        Verdict::Wait { .. } | Verdict::StepBack => {
            let problem = "waits on no contender, or on a contender that is not before it, or steps \
                           back for none behind it";
            Err(rule_is_broken(queue.shared.label()?, problem).into())
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
    let rule = &*queue.shared.rule;
    let listing = queue.list().await?;
    refuse_other_recipes(queue, &listing)?;
    let ordered = queue.in_order(listing).await?;
    let (mut contenders, data) = (ordered.contenders, ordered.data);
    let last = contenders.last();
    let next = last.map_or(0.into(), |last| last.sequence().next());
    let label = queue.shared.label()?;
    let name = format!("{}{next}", Identity::from_random_bits(0).name(label));
    let newcomer = queue.contender(&name);
    contenders.push(newcomer.ok_or_else(|| rule_is_broken(label, UNCOUNTED))?);
    Ok(decide(rule, &contenders, data.as_deref())? == Verdict::Hold)
}

/// Asks the rule about the last contender.
fn decide(
    rule: &dyn Rule,
    contenders: &[Contender],
    data: Option<&[u8]>,
) -> Result<Verdict, InvalidInput> {
    match contenders.split_last() {
        Some((me, before)) => rule.decide(&QueueView::new(before, me, data)),
        None => Err(rule_is_broken(&rule.label(), UNCOUNTED)),
    }
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

/// The contenders that a waiter waits on.
pub(crate) struct Predecessors {
    contenders: Vec<Predecessor>,
    /// The number of contenders before the waiter.
    position: usize,
    /// The directory's data that the verdict is based on.
    data: Option<Vec<u8>>,
}

impl Predecessors {
    /// Reports whom the attempt waits behind: the last of the contenders.
    pub(crate) fn report(&self, attempt: &AttemptRecord) {
        if let Some(last) = self.contenders.last() {
            attempt.waits(&last.name, self.position);
        }
    }

    /// True if these contenders include this name, and the property is true of that contender.
    fn any(&self, name: &str, is_so: impl Fn(&Predecessor) -> bool) -> bool {
        let mut contenders = self.contenders.iter();
        contenders.any(|awaited| awaited.name == name && is_so(awaited))
    }

    /// Warns if the waiter's task holds by one of the contenders.
    pub(crate) fn warn_of_own_wait(&self, queue: &SessionQueue<'_>, own: &Znode) {
        let own_name = queue.name(own.path());
        // The session may hold a hundred thousand, so they are asked for contenders of it only.
        let awaited = self.contenders.iter().map(|awaited| awaited.name.as_str());
        for name in awaited.filter(|name| are_of_one_session(name, own_name)) {
            let awaited = queue.child(name);
            queue.open.warn_of_own_wait(own.path(), &awaited);
        }
    }
}

/// A contender that a waiter waits on.
struct Predecessor {
    name: String,
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

/// How a wait has ended.
pub(crate) enum WaitResult {
    /// The waiter holds: a grant has begun, after this number of lapses.
    Holds(LeaseEpoch),
    /// The waiter may hold, by this list of the queue.
    Listed(Listing),
    /// The waiter may hold, and must list the queue.
    LookAgain,
}

/// Waits until one of the predecessors may have left, or the directory's data has changed.
pub(crate) async fn wait_for_predecessors(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    own: &Znode,
    on: &Predecessors,
) -> Result<WaitResult, Error> {
    watches.contenders.retain(|name, _| on.any(name, |_| true));
    loop {
        let changed = set_watches(watches, queue, own, on).await?;
        let are_set = changed.is_none();
        let woken = match changed {
            Some(woken) => woken,
            None => {
                watches.look_pace = None;
                watches.next().await
            }
        };
        match woken {
            WaitEvent::OwnLost(loss) => return Err(place_lost(queue, own.path(), loss).await),
            WaitEvent::Gone(name) if on.any(&name, |awaited| awaited.grants_on_deletion) => {
                return hold_or_look(watches, queue, own).await;
            }
            WaitEvent::Gone(_) | WaitEvent::Directory | WaitEvent::Changed => {
                if !are_set {
                    // This may happen a few times in a row, without a pause.
                    let few = || Backoff::default().skip_first(4);
                    watches.look_pace.get_or_insert_with(few).wait().await;
                }
                return Ok(WaitResult::LookAgain);
            }
            WaitEvent::Written(name) if on.any(&name, |awaited| awaited.grants_on_mark) => {
                return hold_or_look(watches, queue, own).await;
            }
            // The next loop sets the watch again. Its read shows if the contender has left.
            WaitEvent::Written(_) => {}
        }
    }
}

/// Holds or lists the queue, once no contender is left before the waiter.
async fn hold_or_look(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    own: &Znode,
) -> Result<WaitResult, Error> {
    match watches.own.begin_grant(queue.live, &*queue.server) {
        Ok(Some(epoch)) => Ok(WaitResult::Holds(epoch)),
        Ok(None) => Ok(WaitResult::LookAgain),
        Err(loss) => Err(place_lost(queue, own.path(), loss).await),
    }
}

/// The error of a contender whose znode is deleted.
///
/// Its session may have ended, and deleted the znode. If so, no answer comes, and the attempt fails
/// with the end of the session.
pub(crate) async fn deleted(queue: &SessionQueue<'_>, path: &str) -> Error {
    until_session_answers(queue.live).await;
    Error::ContenderDeleted {
        path: path.to_owned(),
        session: queue.live.id,
    }
}

/// Resolves when a server answers a request of the session.
///
/// If the session is over, the future marks it as ended and never resolves: the caller ends with
/// the session.
async fn until_session_answers(live: &LiveSession) {
    let mut backoff = Backoff::up_to(live.probe_interval);
    loop {
        let answered = match live.server() {
            Ok(server) => server.sync("/").await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(_) => return,
            Err(ServerError::SessionOver(end)) => {
                live.set_status(Status::Ended(end));
                return std::future::pending().await;
            }
            Err(_) => backoff.wait().await,
        }
    }
}

/// The error of a waiter that has lost its znode.
async fn place_lost(queue: &SessionQueue<'_>, path: &str, loss: ZnodeLoss) -> Error {
    match loss {
        ZnodeLoss::Deleted => deleted(queue, path).await,
        ZnodeLoss::Written => Error::ContenderWritten {
            path: path.to_owned(),
            session: queue.live.id,
        },
    }
}

type Read<'q> = Reply<'q, (Vec<u8>, Stat, Watch)>;

/// Sets the missing watches of a waiter that waits on these contenders.
///
/// The result is what has changed meanwhile, or may have changed, and `None` if all watches are set.
async fn set_watches<'q>(
    watches: &mut Watches,
    queue: &'q SessionQueue<'q>,
    own: &Znode,
    on: &Predecessors,
) -> Result<Option<WaitEvent>, Error> {
    let server = &queue.server;
    let missing: Vec<(&Predecessor, String)> = on
        .contenders
        .iter()
        .filter(|awaited| !watches.contenders.contains_key(&awaited.name))
        .map(|awaited| (awaited, queue.child(&awaited.name)))
        .collect();
    let wants_own = !watches.own.is_set();
    if wants_own || !missing.is_empty() {
        watches.own.note_request(&**server);
    }
    let read_own = wants_own.then(|| server.get_and_watch(own.path()));
    let wants_directory = watches.directory.is_none() && queue.shared.rule.reads_directory();
    let directory = wants_directory.then(|| server.get_and_watch(queue.directory()));
    let paths = missing.iter();
    let contenders: Vec<Read<'_>> = paths.map(|(_, path)| server.get_and_watch(path)).collect();

    let mut changed = None;
    if let Some(read) = read_own {
        if !await_own_watch(watches, queue, own, read).await? {
            changed = Some(WaitEvent::Changed);
        }
    }
    if let Some(directory) = directory {
        if !await_directory_watch(watches, queue, on, directory).await? {
            changed = Some(WaitEvent::Changed);
        }
    }
    let mut gone = None;
    for ((awaited, path), contender) in missing.iter().zip(contenders) {
        match contender.await {
            Ok((_, stat, _)) if awaited.czxid.is_some_and(|czxid| czxid != stat.czxid) => {
                changed = Some(WaitEvent::Changed);
            }
            Ok((_, _, watch)) => {
                watches.contenders.insert(awaited.name.clone(), watch);
            }
            Err(error) if error.is(Refusal::NoNode) => gone = Some(awaited.name.clone()),
            Err(ServerError::OutcomeUnknown(_)) => changed = Some(WaitEvent::Changed),
            Err(error) => return Err(queue.not_read(path, error)),
        }
    }
    Ok(gone.map(WaitEvent::Gone).or(changed))
}

/// Keeps the watch on the waiter's own znode. False if no answer came.
async fn await_own_watch(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    own: &Znode,
    read: Read<'_>,
) -> Result<bool, Error> {
    match read.await {
        Ok((_, stat, watch)) => {
            let watched = Watched {
                server: queue.server.clone(),
                znode: own.clone(),
            };
            if let Some(loss) = watched.loss(&stat) {
                return Err(place_lost(queue, own.path(), loss).await);
            }
            watches.own.set(LossWatch::new(watched, Some(watch)));
            Ok(true)
        }
        Err(error) if error.is(Refusal::NoNode) => Err(deleted(queue, own.path()).await),
        Err(ServerError::OutcomeUnknown(_)) => Ok(false),
        Err(error) => Err(queue.not_read(own.path(), error)),
    }
}

/// Keeps the watch on the directory's data.
///
/// False if data that the verdict is based on has changed, or no answer came.
async fn await_directory_watch(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    on: &Predecessors,
    directory: Read<'_>,
) -> Result<bool, Error> {
    match directory.await {
        Ok((data, _, watch)) => {
            watches.directory = Some(watch);
            Ok(Some(data) == on.data)
        }
        // If there is no directory, the waiter's own znode is deleted, too. The next look says so.
        Err(error) if error.is_unknown() || error.is(Refusal::NoNode) => Ok(false),
        Err(error) => Err(queue.failed(error)),
    }
}

/// The watches of one waiter, kept as long as they are useful.
#[derive(Default)]
pub(crate) struct Watches {
    /// On the waiter's own znode.
    pub(crate) own: OwnWatch,
    /// On the directory's data.
    pub(crate) directory: Option<Watch>,
    /// On the directory's children, and the number of reconnects before it was set.
    pub(crate) parent: Option<(Watch, u64)>,
    /// On the contenders that the waiter waits on, by name.
    contenders: BTreeMap<String, Watch>,
    /// Paces the looks if contenders leave before they are watched.
    look_pace: Option<Backoff>,
}

enum WaitEvent {
    OwnLost(ZnodeLoss),
    /// The directory's data has changed.
    Directory,
    /// The queue may have changed, and must be listed.
    Changed,
    /// The znode of the contender with this name is deleted.
    Gone(String),
    /// Somebody wrote to the znode of the contender with this name.
    Written(String),
}

impl Watches {
    async fn next(&mut self) -> WaitEvent {
        let own = self.own.lost();
        let directory = or_pending(self.directory.as_mut());
        let others = self.contenders.values_mut();
        let other = or_pending((others.len() > 0).then(|| select_all(others)));
        let woken = tokio::select! {
            // If the waiter's own deletion and another's are both known, its own counts.
            biased;
            loss = own => return WaitEvent::OwnLost(loss),
            _ = directory => None,
            (event, index, _) = other => Some((event, index)),
        };
        let Some((event, index)) = woken else {
            self.directory = None;
            return WaitEvent::Directory;
        };
        let name = self
            .contenders
            .keys()
            .nth(index)
            .cloned()
            .unwrap_or_default();
        self.contenders.remove(&name);
        match event {
            Event::DataChanged => WaitEvent::Written(name),
            Event::Deleted => WaitEvent::Gone(name),
            // The first two are no events of such a watch.
            Event::Created | Event::ChildrenChanged | Event::Unwatched | Event::SessionEnded(_) => {
                WaitEvent::Changed
            }
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/wait.rs"]
mod tests;
