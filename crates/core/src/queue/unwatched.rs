//! The znodes that a waiter cannot watch, because the watch budget is used up.

use futures_util::future::{FutureExt, select_all};

use crate::error::Error;
use crate::queue::session_queue::SessionQueue;
use crate::queue::watches::Woken;
use crate::server::error::ServerError;
use crate::watch::budget::{Kind, Purpose, WatchBudget};
use crate::watch::sweep::{self, Look, Seen, Urgency};

/// Znodes that a waiter reads from time to time until it can watch them.
pub(crate) struct Unwatched<'q> {
    queue: &'q SessionQueue<'q>,
    purpose: Purpose,
    /// The paths that need room in the watch budget.
    paths: Vec<String>,
    /// The look at the waiter's own znode.
    own: Option<Look>,
    /// The look at the directory, for its data.
    directory: Option<Look>,
    /// The data that the verdict is based on.
    data: Option<Vec<u8>>,
    /// The looks at the contenders that the waiter waits on.
    contenders: Vec<Look>,
}

impl<'q> Unwatched<'q> {
    /// Looks at the waiter's own znode, the directory, and the contenders at these paths.
    pub(crate) fn new(
        queue: &'q SessionQueue<'q>,
        purpose: Purpose,
        own: Option<&str>,
        directory: Option<&str>,
        contenders: &[&str],
        data: Option<Vec<u8>>,
    ) -> Unwatched<'q> {
        let look_at = |path: &str| sweep::look_at(queue.live, path, Urgency::Waited);
        let read = |path: &str| sweep::read(queue.live, path, Urgency::Waited);
        let paths = own.into_iter().chain(directory);
        Unwatched {
            queue,
            purpose,
            paths: paths
                .chain(contenders.iter().copied())
                .map(str::to_owned)
                .collect(),
            own: own.map(look_at),
            directory: directory.map(read),
            data,
            contenders: contenders.iter().copied().map(look_at).collect(),
        }
    }

    /// Waits for the first change, or for room in the watch budget.
    ///
    /// Cancel safe: the future may be dropped, and the method called again.
    pub(crate) async fn next(&mut self) -> Result<Woken, Error> {
        let queue = self.queue;
        let budget = queue.live.attached::<WatchBudget>();
        let paths = self.paths.iter().map(|path| (Kind::Data, path.as_str()));
        let wanted: Vec<_> = paths.collect();
        let looks = self.contenders.iter_mut();
        let contenders: Vec<_> = looks.map(|look| gone(look).boxed()).collect();
        let contender = async {
            match contenders.is_empty() {
                true => std::future::pending().await,
                false => select_all(contenders).await.0,
            }
        };
        let own = async {
            match &mut self.own {
                Some(look) => gone(look).await,
                None => std::future::pending().await,
            }
        };
        let directory = async {
            match &mut self.directory {
                Some(look) => changed(look, &self.data).await,
                None => std::future::pending().await,
            }
        };
        let woken = tokio::select! {
            biased;
            gone = own => gone.map(|()| Woken::OwnGone),
            changed = directory => changed.map(|()| Woken::Directory),
            gone = contender => gone.map(|()| Woken::Changed),
            reserved = budget.reserve(self.purpose, &wanted) => Ok(Woken::Room(reserved)),
        };
        woken.map_err(|error| queue.failed(error))
    }
}

/// Waits until the znode is deleted.
async fn gone(look: &mut Look) -> Result<(), ServerError> {
    look.until(|seen| match seen {
        Seen::Gone => Some(Ok(())),
        Seen::There(_) => None,
        Seen::Refused(refusal) => Some(Err(ServerError::Refused(refusal.clone()))),
    })
    .await
}

/// Waits until the directory's data differs from this data.
async fn changed(look: &mut Look, data: &Option<Vec<u8>>) -> Result<(), ServerError> {
    look.until(|seen| match seen {
        // If there is no directory, the waiter's own znode is deleted, too.
        Seen::Gone => Some(Ok(())),
        Seen::There(there) => (Some(&there.0) != data.as_ref()).then_some(Ok(())),
        Seen::Refused(refusal) => Some(Err(ServerError::Refused(refusal.clone()))),
    })
    .await
}
