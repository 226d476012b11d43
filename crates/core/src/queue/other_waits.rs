//! The ways to wait that are there for comparison: to watch the directory, and to poll.

use std::time::Duration;

use crate::error::Error;
use crate::queue::session_queue::{Listing, SessionQueue};
use crate::queue::wait::Watches;
use crate::retry::retry;
use crate::server::error::{ServerError, if_there};
use crate::sync::or_pending;

/// Waits for this time, and lists the queue.
pub(crate) async fn poll(queue: &SessionQueue<'_>, interval: Duration) -> Result<Listing, Error> {
    tokio::time::sleep(interval).await;
    queue.list_again().await
}

/// Waits until the directory may have changed, and lists it.
pub(crate) async fn wait_on_parent(
    watches: &mut Watches,
    queue: &SessionQueue<'_>,
) -> Result<Listing, Error> {
    until_parent_changes(watches, queue).await;
    // Read before the watch is set, so that no later reconnect is missed.
    let reconnects = queue.live.snapshot().reconnects;
    let path = queue.directory();
    let list = || async {
        // Sent in this order, because the data must not be older than the names.
        let names = queue.server.list_and_watch(path);
        let reads = queue.shared.rule.reads_directory();
        let data = reads.then(|| queue.server.get_and_watch(path));
        let names = names.await?;
        let data = match data {
            Some(data) => Some(data.await?),
            None => None,
        };
        Ok((names, data))
    };
    let list = || async { if_there(list().await) };
    let listed = retry(ServerError::is_unknown, list).await;
    let Some(((names, watch), data)) = listed.map_err(|error| queue.failed(error))? else {
        return Ok(Listing::missing());
    };
    watches.parent = Some((watch, reconnects));
    let data = data.map(|(data, _, watch)| {
        watches.directory = Some(watch);
        data
    });
    Ok(queue.listing(names, data))
}

/// Waits for the watches on the directory, if they are set.
async fn until_parent_changes(watches: &mut Watches, queue: &SessionQueue<'_>) {
    let Some((watch, reconnects)) = watches.parent.take() else {
        return;
    };
    let mut snapshot = queue.live.subscribe();
    // A reconnect is a reason to look, because a watch on children can miss a change then.
    let reconnected = async {
        // An error means that the session is over, which ends the attempt.
        let _ = snapshot.wait_for(|now| now.reconnects != reconnects).await;
    };
    let directory = watches.directory.take();
    tokio::select! {
        biased;
        _ = watch => {}
        _ = or_pending(directory) => {}
        () = reconnected => {}
    }
}
