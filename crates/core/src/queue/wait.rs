//! The wait in the queue, until the waiter may hold: its watches, how they are set, and what wakes it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{FutureExt, select_all};

use crate::error::Error;
use crate::events::attempt::Attempt;
use crate::hold::loss_watch::{Certainty, LossWatch, Watched};
use crate::queue::place::Place;
use crate::queue::session_queue::SessionQueue;
use crate::retry::{Backoff, LONGEST, retry};
use crate::server::ensemble::{Event, Reply, ServerSession, Stat, Watch};
use crate::server::error::{Refusal, ServerError};

/// What a waiter waits on.
pub(crate) struct WaitOn {
    pub(crate) contenders: Vec<Awaited>,
    /// The number of contenders before the waiter.
    pub(crate) position: usize,
    /// The directory's data that the verdict is based on.
    pub(crate) data: Option<Vec<u8>>,
}

impl WaitOn {
    /// Tells whom the attempt waits behind: the last of the contenders.
    pub(crate) fn tell(&self, attempt: &Attempt) {
        if let Some(last) = self.contenders.last() {
            attempt.waits(&last.name, self.position);
        }
    }
}

impl WaitOn {
    /// Warns if one of the contenders is a holder of the waiter's own session.
    pub(crate) fn warn_of_own_wait(
        &self,
        queue: &SessionQueue<'_>,
        place: &Place,
        waited: Duration,
    ) {
        let me = place.name().unwrap_or_default();
        let is_awaited = |path: &str| {
            let mut contenders = self.contenders.iter();
            contenders.any(|awaited| queue.child(&awaited.name) == path)
        };
        let granted = &queue.open.granted;
        granted.warn_of_own_wait(me, waited, is_awaited);
    }
}

/// A contender that a waiter waits on.
pub(crate) struct Awaited {
    pub(crate) name: String,
    /// The transaction that created its znode, if the order depends on it.
    ///
    /// Znodes at the end of the count have the same number. If a contender has gone, a later znode
    /// can get its name.
    pub(crate) czxid: Option<i64>,
    /// True if the waiter holds once this contender marks its release.
    pub(crate) hands_off: bool,
    /// True if any deletion of this contender grants the lock to the waiter.
    pub(crate) stands_alone: bool,
}

/// The result of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The waiter holds.
    Handoff,
    /// The waiter may hold, and must list the queue.
    LookAgain,
}

/// Waits until one of these contenders may have left, or the directory's data has changed.
pub(crate) async fn wait_on(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    place: &Place,
    on: &WaitOn,
) -> Result<Waited, Error> {
    let names = on.contenders.iter().map(|awaited| awaited.name.as_str());
    watches.keep(&names.collect::<Vec<_>>());
    loop {
        match set_watches(watches, queue, place, on).await? {
            Set::All => watches.look_again = may_happen(),
            Set::Gone(name) if is(on, &name, |awaited| awaited.stands_alone) => {
                return has_its_turn(watches, queue, place).await;
            }
            Set::Gone(_) | Set::LookAgain => {
                watches.look_again.wait().await;
                return Ok(Waited::LookAgain);
            }
        }
        match watches.next().await {
            Woken::OwnGone => return Err(deleted(queue, place).await),
            Woken::Gone(name) if is(on, &name, |awaited| awaited.stands_alone) => {
                return has_its_turn(watches, queue, place).await;
            }
            // It matters only once the waiter would hold.
            Woken::Directory if !queue.shared.rule.reads_directory() => {}
            Woken::Gone(_) | Woken::Directory | Woken::Changed => return Ok(Waited::LookAgain),
            Woken::Written(name) if is(on, &name, |awaited| awaited.hands_off) => {
                return has_its_turn(watches, queue, place).await;
            }
            // The contender may still be there, so it is watched again unless it has left.
            Woken::Written(_) => {}
        }
    }
}

/// True if these contenders include this name, and the property is true of that contender.
fn is(on: &WaitOn, name: &str, is_so: impl Fn(&Awaited) -> bool) -> bool {
    let mut contenders = on.contenders.iter();
    contenders.any(|awaited| awaited.name == name && is_so(awaited))
}

/// Looks at the waiter's own znode once no contender is left before the waiter.
///
/// The waiter holds if its znode certainly stands, and it need not look behind it.
async fn has_its_turn(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    place: &Place,
) -> Result<Waited, Error> {
    let may_step_back = place.may_step_back(queue, None) && !watches.rule_out_a_step_back();
    match watches.look_at_own(&*queue.server) {
        Certainty::Certain if !may_step_back && queue.server.orders_events() => Ok(Waited::Handoff),
        Certainty::Certain | Certainty::Doubtful => Ok(Waited::LookAgain),
        Certainty::Gone => Err(deleted(queue, place).await),
    }
}

/// The error of a waiter whose znode is deleted.
///
/// The znode may have been deleted with its session. The server then tells of the session's end a
/// moment later.
async fn deleted(queue: &SessionQueue<'_>, place: &Place) -> Error {
    let read = || queue.server.get(place.path());
    match retry(ServerError::is_unknown, read).await {
        Err(error @ ServerError::SessionOver(_)) => queue.failed(error),
        _ => place.deleted(),
    }
}

/// The outcome of setting the missing watches.
pub(crate) enum Set {
    /// All watches stand.
    All,
    /// The watches stand, except that the contender with this name has left.
    Gone(String),
    /// The queue has changed meanwhile, or may have changed.
    LookAgain,
}

/// The paths that must be watched.
struct Missing<'p> {
    own: Option<&'p str>,
    directory: Option<&'p str>,
    /// The contenders and their paths.
    contenders: Vec<(&'p Awaited, String)>,
}

type Read<'q> = Reply<'q, (Vec<u8>, Stat, Watch)>;

/// Sets the missing watches of a waiter that waits on these contenders.
pub(crate) async fn set_watches<'q>(
    watches: &mut Watches,
    queue: &'q SessionQueue<'q>,
    place: &Place,
    on: &WaitOn,
) -> Result<Set, Error> {
    let server = &queue.server;
    let awaited = on.contenders.iter();
    let missing = Missing {
        own: watches.own.is_none().then(|| place.path()),
        directory: wants_directory(watches, queue, place).then(|| queue.directory()),
        contenders: awaited
            .filter(|awaited| !watches.contenders.contains_key(&awaited.name))
            .map(|awaited| (awaited, queue.child(&awaited.name)))
            .collect(),
    };
    if missing.own.is_some() || !missing.contenders.is_empty() {
        watches.connection = server.connection();
    }
    let own = missing.own.map(|path| server.get_and_watch(path));
    let directory = missing.directory.map(|path| server.get_and_watch(path));
    let paths = missing.contenders.iter();
    let contenders: Vec<Read<'_>> = paths.map(|(_, path)| server.get_and_watch(path)).collect();

    let mut set = Set::All;
    if let Some(own) = own {
        if !watch_own(watches, queue, place, own).await? {
            set = Set::LookAgain;
        }
    }
    if let Some(directory) = directory {
        if !watch_directory(watches, queue, (place, on), directory).await? {
            set = Set::LookAgain;
        }
    }
    let mut gone = None;
    for ((awaited, _), contender) in missing.contenders.iter().zip(contenders) {
        match contender.await {
            Ok((_, stat, _)) if awaited.czxid.is_some_and(|czxid| czxid != stat.czxid) => {
                set = Set::LookAgain;
            }
            Ok((_, _, watch)) => {
                watches.contenders.insert(awaited.name.clone(), watch);
            }
            Err(error) if error.is(Refusal::NoNode) => gone = Some(awaited.name.clone()),
            Err(ServerError::OutcomeUnknown(_)) => set = Set::LookAgain,
            Err(error) => return Err(queue.failed(error)),
        }
    }
    Ok(gone.map_or(set, Set::Gone))
}

/// True if the waiter has to watch the directory's data.
fn wants_directory(watches: &Watches, queue: &SessionQueue<'_>, place: &Place) -> bool {
    // Once the data has changed, the contender looks behind it before it holds, whatever comes.
    let may_step_back = || watches.may_step_back.is_none() && place.may_step_back(queue, None);
    watches.directory.is_none() && (queue.shared.rule.reads_directory() || may_step_back())
}

/// Keeps the watch on the waiter's own znode. False if no answer came.
async fn watch_own(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    place: &Place,
    own: Read<'_>,
) -> Result<bool, Error> {
    match own.await {
        Ok((_, stat, watch)) => {
            let watched = Watched {
                server: queue.server.clone(),
                znode: place.znode.clone(),
            };
            if watched.gone(&stat).is_some() {
                return Err(place.deleted());
            }
            watches.own = Some(LossWatch::armed(watched, watch));
            Ok(true)
        }
        Err(error) if error.is(Refusal::NoNode) => Err(place.deleted()),
        Err(ServerError::OutcomeUnknown(_)) => Ok(false),
        Err(error) => Err(queue.failed(error)),
    }
}

/// Keeps the watch on the directory's data.
///
/// False if data that the verdict is based on has changed, or no answer came.
async fn watch_directory(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
    (place, on): (&Place, &WaitOn),
    directory: Read<'_>,
) -> Result<bool, Error> {
    match directory.await {
        Ok((data, _, watch)) => {
            watches.directory = Some(watch);
            watches.may_step_back = Some(place.may_step_back(queue, Some(&data)));
            let reads = queue.shared.rule.reads_directory();
            Ok(!reads || Some(data) == on.data)
        }
        // If there is no directory, the waiter's own znode is deleted, too. The next look says so.
        Err(error) if error.is(Refusal::NoNode) => Ok(false),
        Err(ServerError::OutcomeUnknown(_)) => Ok(false),
        Err(error) => Err(queue.failed(error)),
    }
}

/// The watches of one waiter, kept as long as they are useful.
pub(crate) struct Watches {
    /// On the waiter's own znode.
    pub(crate) own: Option<LossWatch>,
    /// On the directory's data.
    pub(crate) directory: Option<Watch>,
    /// False if the directory's data, as the watch on it was set, rules out a step back. `None` if
    /// the data was not read.
    pub(crate) may_step_back: Option<bool>,
    /// On the directory's children.
    pub(crate) parent: Option<Watch>,
    /// On the contenders that the waiter waits on, by name.
    pub(crate) contenders: BTreeMap<String, Watch>,
    /// The connection over which the last watch was set.
    ///
    /// Over a later one, events may come in another order than they happened in.
    pub(crate) connection: Option<u64>,
    /// Paces the looks if contenders leave before they are watched.
    pub(crate) look_again: Backoff,
}

impl Default for Watches {
    fn default() -> Watches {
        Watches {
            own: None,
            directory: None,
            may_step_back: None,
            parent: None,
            contenders: BTreeMap::new(),
            connection: None,
            look_again: may_happen(),
        }
    }
}

/// The pauses for contenders that leave before they are watched.
///
/// This may happen a few times in a row, without a pause.
pub(crate) fn may_happen() -> Backoff {
    Backoff::after(4, LONGEST)
}

/// What wakes a waiter.
pub(crate) enum Woken {
    OwnGone,
    /// The directory's data has changed.
    Directory,
    /// The queue must be listed.
    Changed,
    /// The znode of the contender with this name is deleted.
    Gone(String),
    /// Somebody wrote to the znode of the contender with this name.
    Written(String),
}

impl Watches {
    /// Drops the watches on all contenders but these.
    pub(crate) fn keep(&mut self, names: &[&str]) {
        self.contenders
            .retain(|name, _| names.contains(&name.as_str()));
    }

    /// The state of the waiter's own znode, at an event of another znode.
    ///
    /// If both znodes are watched over one connection, every earlier event of the own znode is
    /// known. After a reconnect an earlier event may come later.
    pub(crate) fn look_at_own(&mut self, server: &dyn ServerSession) -> Certainty {
        let is_same_connection =
            self.connection.is_some() && self.connection == server.connection();
        match self.own.as_mut().map(LossWatch::look) {
            Some(Certainty::Certain) if is_same_connection => Certainty::Certain,
            Some(Certainty::Gone) => Certainty::Gone,
            _ => Certainty::Doubtful,
        }
    }

    /// True if the contender need not look behind it before it holds.
    ///
    /// The directory's data says so, and has not changed. A server tells of a change before it
    /// answers a later request. At an event, a change may be told later only after a reconnect,
    /// and then the own znode [is in doubt](Self::look_at_own).
    pub(crate) fn rule_out_a_step_back(&mut self) -> bool {
        let directory = self.directory.as_mut();
        let is_unchanged = directory.is_some_and(|watch| watch.now_or_never().is_none());
        if !is_unchanged {
            // A future must not be polled again once it has resolved.
            self.directory = None;
        }
        is_unchanged && self.may_step_back == Some(false)
    }

    /// Waits for the first event.
    pub(crate) async fn next(&mut self) -> Woken {
        let own = async {
            match &mut self.own {
                Some(own) => own.gone().await,
                None => std::future::pending().await,
            }
        };
        let directory = async {
            match &mut self.directory {
                Some(watch) => watch.await,
                None => std::future::pending().await,
            }
        };
        let other = async {
            match self.contenders.is_empty() {
                true => std::future::pending().await,
                false => select_all(self.contenders.values_mut()).await,
            }
        };
        let woken = tokio::select! {
            // If the waiter's own deletion and another's are both known, its own counts.
            biased;
            _ = own => return Woken::OwnGone,
            _ = directory => None,
            (event, index, _) = other => Some((event, index)),
        };
        let Some((event, index)) = woken else {
            self.directory = None;
            return Woken::Directory;
        };
        let name = self
            .contenders
            .keys()
            .nth(index)
            .cloned()
            .unwrap_or_default();
        self.contenders.remove(&name);
        match event {
            Event::DataChanged | Event::Created | Event::ChildrenChanged => Woken::Written(name),
            Event::Deleted => Woken::Gone(name),
            Event::Unwatched | Event::SessionEnded(_) => Woken::Changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::hold::own_znode::OwnZnodes;
    use crate::live::scripted::Scripted;

    /// After a reconnect the server tells of missed events in any order.
    #[tokio::test(start_paused = true)]
    async fn own_znode_is_in_doubt_once_the_connection_has_broken() {
        let (live, server) = Scripted::open(Duration::from_millis(1));
        let watched = Watched {
            znode: OwnZnodes::new(&live).unique("/own"),
            server: server.clone(),
        };
        let never = std::future::pending().boxed();
        let mut watches = Watches {
            own: Some(LossWatch::armed(watched, never)),
            connection: server.connection(),
            ..Watches::default()
        };
        assert_eq!(watches.look_at_own(&*server), Certainty::Certain);
        server.reconnect();
        assert_eq!(watches.look_at_own(&*server), Certainty::Doubtful);
    }
}
