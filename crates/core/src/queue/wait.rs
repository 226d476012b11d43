//! The wait in the queue, until the waiter may hold.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::error::Error;
use crate::hold::loss_watch::Standing;
use crate::queue::look::{Awaited, WaitOn};
use crate::queue::place::Place;
use crate::queue::session_queue::{Listing, SessionQueue};
use crate::queue::set_watches::{Set, set_watches};
use crate::queue::watches::{Watches, Woken, may_happen};
use crate::server::error::{Refusal, ServerError};

/// The result of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The waiter holds.
    Handover,
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
            Woken::Written(name) if is(on, &name, |awaited| awaited.hands_over) => {
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
        Standing::Certain if !may_step_back && queue.server.orders_events() => Ok(Waited::Handover),
        Standing::Certain | Standing::Doubtful => Ok(Waited::LookAgain),
        Standing::Gone => Err(deleted(queue, place).await),
    }
}

/// The error of a waiter whose znode is deleted.
///
/// The znode may have been deleted with its session. The server then tells of the session's end a
/// moment later.
async fn deleted(queue: &SessionQueue<'_>, place: &Place) -> Error {
    let mut backoff = Backoff::up_to(Duration::from_secs(1));
    loop {
        match queue.server.get(place.path()).await {
            Ok(_) | Err(ServerError::Refused(_)) => return place.deleted(),
            Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
            Err(error @ ServerError::SessionOver(_)) => return queue.failed(error),
        }
    }
}

/// Waits until the directory may have changed, and lists it.
pub(crate) async fn wait_on_parent(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
) -> Result<Listing, Error> {
    parent_changed(watches, queue).await;
    let path = queue.directory();
    let mut backoff = Backoff::up_to(Duration::from_secs(1));
    loop {
        // Sent in this order, because the data must not be older than the names.
        let names = queue.server.list_and_watch(path);
        let reads = queue.shared.rule.reads_directory();
        let data = reads.then(|| queue.server.get_and_watch(path));
        let answers = async {
            let names = names.await?;
            let data = match data {
                Some(data) => Some(data.await?),
                None => None,
            };
            Ok((data, names))
        };
        match answers.await {
            Ok((data, (names, watch))) => {
                watches.parent = Some(watch);
                let data = data.map(|(data, _, watch)| {
                    watches.directory = Some(watch);
                    data
                });
                return Ok(Listing {
                    names,
                    data,
                    is_missing: false,
                });
            }
            Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
            Err(error) if ServerError::is(&error, Refusal::NoNode) => {
                return Ok(Listing::missing());
            }
            Err(error) => return Err(queue.failed(error)),
        }
    }
}

/// Waits for the watches on the directory, if they are set.
async fn parent_changed(watches: &mut Watches, queue: &SessionQueue<'_>) {
    let mut condition = queue.live.subscribe();
    let reconnects = condition.borrow_and_update().reconnects;
    let Some(watch) = watches.parent.take() else {
        return;
    };
    // A reconnect is a reason to look, because a watch on children can miss a change then.
    let reconnected = async {
        // An error means that the session is over, which ends the attempt.
        let _ = condition.wait_for(|now| now.reconnects != reconnects).await;
    };
    let directory = watches.directory.take();
    let directory_changed = async {
        match directory {
            Some(watch) => watch.await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        _ = watch => {}
        _ = directory_changed => {}
        () = reconnected => {}
    }
}
