//! Sets a waiter's watches, and sends all requests before it waits for an answer.

use crate::error::Error;
use crate::hold::loss_watch::{LossWatch, Watched};
use crate::hold::own_znode::OwnNode;
use crate::queue::look::{Awaited, WaitOn};
use crate::queue::place::Place;
use crate::queue::session_queue::SessionQueue;
use crate::queue::watches::Watches;
use crate::server::ensemble::{Reply, Stat, Watch};
use crate::server::error::{Refusal, ServerError};

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
            let mut node = OwnNode::unique(queue.live, place.path());
            if place.marks {
                node = node.written_by_owner_alone(true);
            }
            let watched = Watched {
                live: queue.live.clone(),
                server: queue.server.clone(),
                node,
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
