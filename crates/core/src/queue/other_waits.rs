//! The ways to wait that are there for comparison: to watch the directory, and to poll.

use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};

use crate::error::Error;
use crate::queue::session_queue::{Listing, SessionQueue};
use crate::retry::retry;
use crate::rule::WaitStrategy;
use crate::server::error::{ServerError, if_there};
use crate::sync::or_pending;

pub(crate) enum OtherWait {
    /// Watches the directory. The future resolves once it may have changed since the last list.
    Parent(Option<BoxFuture<'static, ()>>),
    Poll(Duration),
}

impl OtherWait {
    /// `None` for the strategy of all recipes: to watch the predecessor.
    pub(crate) fn new(strategy: WaitStrategy) -> Option<OtherWait> {
        match strategy {
            WaitStrategy::Predecessor => None,
            WaitStrategy::Parent => Some(OtherWait::Parent(None)),
            WaitStrategy::Poll(interval) => Some(OtherWait::Poll(interval)),
        }
    }

    /// Waits until the queue may have changed, and lists it.
    pub(crate) async fn wait(&mut self, queue: &SessionQueue<'_>) -> Result<Listing, Error> {
        match self {
            OtherWait::Poll(interval) => {
                tokio::time::sleep(*interval).await;
                queue.list_again().await
            }
            OtherWait::Parent(changed) => {
                if let Some(changed) = changed.take() {
                    changed.await;
                }
                let (listing, change) = list_and_watch(queue).await?;
                *changed = change;
                Ok(listing)
            }
        }
    }
}

/// Lists the queue. The future resolves once the list may have changed.
async fn list_and_watch(
    queue: &SessionQueue<'_>,
) -> Result<(Listing, Option<BoxFuture<'static, ()>>), Error> {
    let path = queue.directory();
    let list = || async {
        // Sent in this order, because the data must not be older than the names.
        let names = queue.server.list_and_watch(path);
        let reads = queue.setup.rule.reads_directory();
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
        return Ok((Listing::missing(), None));
    };
    let (data, data_watch) = data.map(|(data, _, watch)| (data, watch)).unzip();
    let changed = async move {
        tokio::select! {
            biased;
            _ = watch => {}
            _ = or_pending(data_watch) => {}
        }
    };
    Ok((queue.listing(names, data), Some(changed.boxed())))
}
