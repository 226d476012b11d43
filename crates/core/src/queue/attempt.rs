//! One attempt in one ZooKeeper session: enter, look, wait, look again, hold.

use crate::error::Error;
use crate::events::attempt::Attempt;
use crate::hold::abandoned::until_answered;
use crate::hold::grant::Grant;
use crate::hold::loss_watch::LossWatch;
use crate::queue::enter::{enter, inherits};
use crate::queue::look::{Look, could_win, look};
use crate::queue::place::Place;
use crate::queue::session_queue::{Listing, SessionQueue};
use crate::queue::wait::{Waited, wait_on, wait_on_parent};
use crate::queue::watches::Watches;
use crate::rule::WaitStrategy;
use crate::session::lease::Lease;

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
    loop {
        match look(queue, &mut place, &mut watches, listing).await? {
            Look::Hold => match grant(queue, &mut place, watches.own.take()) {
                Some(grant) => return Ok(Some(grant)),
                None => renew_lease(queue).await?,
            },
            Look::StepBack => {
                let left = place.leave().await;
                return left.map(|()| None).map_err(|error| queue.failed(error));
            }
            Look::Wait(on) => {
                on.tell(attempt);
                match queue.shared.options.strategy {
                    WaitStrategy::Predecessor => {
                        let waited = wait_on(&mut watches, queue, &place, &on).await?;
                        attempt.woken();
                        if waited == Waited::Handover {
                            // If the lease has lapsed, the waiter's znode may be deleted, so the
                            // queue is listed.
                            if let Some(grant) = grant(queue, &mut place, watches.own.take()) {
                                return Ok(Some(grant));
                            }
                        }
                    }
                    WaitStrategy::Parent => {
                        listing = wait_on_parent(&mut watches, queue).await?;
                        continue;
                    }
                    WaitStrategy::Poll(interval) => tokio::time::sleep(interval).await,
                }
            }
        }
        listing = queue.list().await?;
    }
}

/// Enters the queue if the rule says "hold", and holds if it says so again.
pub(crate) async fn try_acquire(queue: &SessionQueue<'_>) -> Result<Option<Grant>, Error> {
    if !inherits(queue) {
        until_answered(queue.live).await;
        if !could_win(queue).await? {
            return Ok(None);
        }
    }
    let (mut place, mut listing) = enter(queue).await?;
    let mut watches = Watches::default();
    loop {
        match look(queue, &mut place, &mut watches, listing).await? {
            Look::Hold => match grant(queue, &mut place, None) {
                Some(grant) => return Ok(Some(grant)),
                None => renew_lease(queue).await?,
            },
            Look::StepBack | Look::Wait(_) => return Ok(None),
        }
        listing = queue.list().await?;
    }
}

fn grant(
    queue: &SessionQueue<'_>,
    place: &mut Place,
    loss_watch: Option<LossWatch>,
) -> Option<Grant> {
    place.grant(&queue.shared.rule, &queue.shared.last_alone, loss_watch)
}

/// Waits until the lease may grant, because the session may have expired.
async fn renew_lease(queue: &SessionQueue<'_>) -> Result<(), Error> {
    let renewed = queue.live.until_lease(queue.directory(), Lease::may_grant);
    renewed.await.map_err(|error| queue.failed(error))
}
