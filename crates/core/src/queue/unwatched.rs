//! What a waiter finds no room to watch.

use futures_util::future::{FutureExt, select_all};

use super::attempt::Attempt;
use crate::error::{Error, ServerError};
use crate::sweep::{self, Look, Seen, Urgency};
use crate::watch_budget::{Kind, Purpose, Reserved};

/// Znodes that a waiter has looked at from time to time, until there is room to watch them.
pub(super) struct Unwatched<'a> {
    attempt: &'a Attempt<'a>,
    purpose: Purpose,
    /// All that there must be room for.
    paths: Vec<String>,
    /// At the waiter's own znode.
    own: Option<Look>,
    /// At the directory, for its data.
    directory: Option<Look>,
    /// At those waited on.
    others: Vec<Look>,
}

/// What a waiter has learned without a watch.
pub(super) enum Learned {
    OwnGone,
    /// Somebody waited on has gone, or the directory's data has changed.
    Changed,
    /// There is room for all that was not watched.
    Room(Reserved),
}

impl<'a> Unwatched<'a> {
    pub(super) fn new(
        attempt: &'a Attempt<'a>,
        purpose: Purpose,
        own: Option<&str>,
        directory: Option<&str>,
        others: &[(&str, String)],
    ) -> Unwatched<'a> {
        let look_at = |path: &str| sweep::look_at(attempt.live, path, Urgency::Waited);
        let read = |path: &str| sweep::read(attempt.live, path, Urgency::Waited);
        let other_paths = || others.iter().map(|(_, path)| path.as_str());
        let paths = own.into_iter().chain(directory).chain(other_paths());
        Unwatched {
            attempt,
            purpose,
            paths: paths.map(str::to_owned).collect(),
            own: own.map(look_at),
            directory: directory.map(read),
            others: other_paths().map(look_at).collect(),
        }
    }

    /// Waits for the first news.
    ///
    /// Cancel safe: may be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<Learned, Error> {
        let attempt = self.attempt;
        let paths = self.paths.iter().map(|path| (Kind::Data, path.as_str()));
        let wanted: Vec<_> = paths.collect();
        let others: Vec<_> = self
            .others
            .iter_mut()
            .map(|look| gone(look).boxed())
            .collect();
        let other = async {
            match others.is_empty() {
                true => std::future::pending().await,
                false => select_all(others).await.0,
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
                Some(look) => changed(attempt, look).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            gone = own => gone.map_err(|error| attempt.failed(error)).map(|()| Learned::OwnGone),
            changed = directory => changed.map(|()| Learned::Changed),
            gone = other => gone.map_err(|error| attempt.failed(error)).map(|()| Learned::Changed),
            room = attempt.live.watch_budget().reserve(self.purpose, &wanted) => Ok(Learned::Room(room)),
        }
    }
}

/// Waits until the znode has gone.
async fn gone(look: &mut Look) -> Result<(), ServerError> {
    look.until(|seen| match seen {
        Seen::Gone => Some(Ok(())),
        Seen::There(_) => None,
        Seen::Refused(refusal) => Some(Err(ServerError::Refused(refusal.clone()))),
    })
    .await
}

/// Waits until the directory's data is another than the rule goes by.
async fn changed(attempt: &Attempt<'_>, look: &mut Look) -> Result<(), Error> {
    loop {
        let data = look.until(|seen| match seen {
            Seen::Gone => Some(Ok(None)),
            Seen::There(there) => Some(Ok(Some(there.0.clone()))),
            Seen::Refused(refusal) => Some(Err(ServerError::Refused(refusal.clone()))),
        });
        let data = data.await.map_err(|error| attempt.failed(error))?;
        // Without a directory the waiter's own znode has gone, too.
        if data.is_none() || attempt.learn(data)? {
            return Ok(());
        }
    }
}
