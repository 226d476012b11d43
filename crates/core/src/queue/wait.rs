//! How a contender waits until the queue may let it hold.

use std::future::{pending, poll_fn};
use std::task::Poll;

use futures_util::future::{BoxFuture, FutureExt};

use crate::contender::{Contender, are_of_one_session};
use crate::error::Error;
use crate::events::attempt::AttemptRecord;
use crate::hold::handoff::{grants_on_deletion, grants_on_mark};
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::Znode;
use crate::hold_state::LossReason;
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::{LiveSession, Status};
use crate::queue::session_queue::SessionQueue;
use crate::retry::{Backoff, retry};
use crate::server::ensemble::{EventType, Pending, ServerSession, Stat, Watch, WatchEvent};
use crate::server::error::{Refusal, ServerError};
use crate::sync::or_pending;

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

/// The watches of a waiter.
pub(crate) struct Watches {
    own: OwnWatch,
    /// The watches on the contenders that it waits on, and on the directory's data, with their paths.
    others: Vec<(String, Watch)>,
    /// Paces the looks if contenders leave before they are watched.
    look_pace: Backoff,
}

impl Default for Watches {
    fn default() -> Watches {
        Watches {
            own: OwnWatch::default(),
            others: Vec::new(),
            look_pace: look_pace(),
        }
    }
}

impl Watches {
    /// The watch on the waiter's own znode, for its hold. `None` if it has not waited.
    pub(crate) fn take_own(&mut self) -> Option<LossWatch> {
        self.own.watch.take()
    }

    /// Waits until one of the predecessors may have left, or the directory's data has changed.
    ///
    /// The result is the epoch of its grant if no contender is left before this one. `None` if it must
    /// list the queue.
    pub(crate) async fn wait(
        &mut self,
        queue: &SessionQueue<'_>,
        znode: &Znode,
        on: &Predecessors,
    ) -> Result<Option<LeaseEpoch>, Error> {
        let directory = queue.directory();
        self.others
            .retain(|(path, _)| path == directory || on.find(path).is_some());
        loop {
            // Boxed: an attempt would keep room for it while it waits.
            let missed = Box::pin(self.set(queue, znode, on)).await?;
            let (path, event) = match missed {
                Some(missed) => {
                    self.look_pace.wait().await;
                    missed
                }
                None => {
                    self.look_pace = look_pace();
                    match self.next_event().await {
                        // After a reconnect the next loop shows if the directory's data has changed.
                        Ok((path, WatchEvent::Unwatched)) if path == directory => continue,
                        Ok(event) => event,
                        Err(loss) => return Err(lost(queue, znode, loss).await),
                    }
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
        match self.own.grant_epoch(queue.live, &queue.server) {
            Ok(granted) => Ok(granted),
            Err(loss) => Err(lost(queue, znode, loss).await),
        }
    }

    /// Sets the missing watches of a waiter that waits on these contenders.
    ///
    /// The result is an event that a watch has missed, and `None` if all watches are set.
    async fn set(
        &mut self,
        queue: &SessionQueue<'_>,
        znode: &Znode,
        on: &Predecessors,
    ) -> Result<Option<(String, WatchEvent)>, Error> {
        let server = &queue.server;
        let wants_own = self.own.watch.is_none();
        let reads_directory = queue.setup.rule.reads_directory();
        let directory = reads_directory.then(|| queue.directory());
        let missing: Vec<&str> = directory
            .into_iter()
            .chain(on.contenders.iter().map(|it| it.path.as_str()))
            .filter(|path| !self.others.iter().any(|(watched, _)| watched == path))
            .collect();
        if wants_own || !missing.is_empty() {
            self.own.requested_over = server.connection();
        }
        // Nobody else creates a znode of a contender's name, so its deletion is never missed.
        let own = wants_own.then(|| server.get_and_keep_watch(znode.path()));
        let read = |path: &&str| match Some(*path) == directory {
            true => server.get_and_watch(path),
            false => server.get_and_keep_watch(path),
        };
        let reads: Vec<Read> = missing.iter().map(read).collect();

        let mut missed = match own {
            Some(own) => self.await_own(queue, znode, own).await?,
            None => None,
        };
        self.others.reserve_exact(missing.len());
        for (path, read) in missing.into_iter().zip(reads) {
            let mut is_missed = |event| missed = Some((path.to_owned(), event));
            match read.await {
                Ok((data, stat, watch)) => {
                    if !on.is_as_listed(path, data, &stat) {
                        is_missed(WatchEvent::Unwatched);
                    }
                    self.others.push((path.to_owned(), watch));
                }
                Err(error) if error.is(Refusal::NoNode) => {
                    is_missed(WatchEvent::Fired(EventType::NodeDeleted))
                }
                Err(ServerError::OutcomeUnknown(_)) => is_missed(WatchEvent::Unwatched),
                Err(error) => return Err(Error::at_read(path, queue.live.id, error)),
            }
        }
        Ok(missed)
    }

    /// Keeps the watch on the own znode. The result is that of [`set`](Self::set).
    async fn await_own(
        &mut self,
        queue: &SessionQueue<'_>,
        znode: &Znode,
        read: Read,
    ) -> Result<Option<(String, WatchEvent)>, Error> {
        match read.await {
            Ok((_, stat, watch)) => {
                if let Some(loss) = znode.loss(&stat) {
                    return Err(lost(queue, znode, loss).await);
                }
                let (znode, server) = (znode.clone(), queue.server.clone());
                self.own.watch = Some(LossWatch::new(znode, server, Some(watch)));
                Ok(None)
            }
            Err(error) if error.is(Refusal::NoNode) => Err(deleted(queue, znode.path()).await),
            Err(ServerError::OutcomeUnknown(_)) => {
                Ok(Some((znode.path().to_owned(), WatchEvent::Unwatched)))
            }
            Err(error) => Err(Error::at_read(znode.path(), queue.live.id, error)),
        }
    }

    /// The next event of a watch, and the path of its znode. The error is the loss of the own znode.
    async fn next_event(&mut self) -> Result<(String, WatchEvent), LossReason> {
        let other = poll_fn(|context| {
            let mut polled = self.others.iter_mut().map(|it| it.1.poll_unpin(context));
            let woken = polled.by_ref().enumerate().find(|it| it.1.is_ready());
            woken.map_or(Poll::Pending, |(index, event)| event.map(|it| (it, index)))
        });
        let (event, index) = tokio::select! {
            // If the waiter's own deletion and another's are both known, its own counts.
            biased;
            loss = self.own.lost() => return Err(loss),
            woken = other => woken,
        };
        let (path, _) = self.others.swap_remove(index);
        Ok((path, event))
    }
}

/// The error of a waiter that has lost its znode.
async fn lost(queue: &SessionQueue<'_>, znode: &Znode, loss: LossReason) -> Error {
    match loss {
        LossReason::Written => Error::ContenderWritten {
            path: znode.path().to_owned(),
            session: queue.live.id,
        },
        _ => deleted(queue, znode.path()).await,
    }
}

/// The error of a contender whose znode is deleted.
///
/// Its session may have ended, and deleted the znode. If so, no answer comes, and the attempt fails
/// with the end of the session.
pub(crate) fn deleted<'q>(queue: &SessionQueue<'q>, path: &str) -> BoxFuture<'q, Error> {
    let (live, path) = (queue.live, path.to_owned());
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

/// The watch of a waiter on its own znode, and the connection of all its watches on contenders.
///
/// It is set before the watches on the contenders before the waiter. So if the waiter's znode was
/// deleted first, the waiter knows it by the time it learns of them.
#[derive(Default)]
struct OwnWatch {
    watch: Option<LossWatch>,
    /// The connection before the last watch on a contender or on the own znode was requested.
    ///
    /// Over a later one, events may come in another order than they happened in.
    requested_over: Option<u64>,
}

impl OwnWatch {
    /// Resolves when the znode is no longer the waiter's.
    async fn lost(&mut self) -> LossReason {
        or_pending(self.watch.as_mut().map(LossWatch::lost)).await
    }

    /// The epoch of a grant by an event which shows that no contender is left before the waiter.
    ///
    /// `None` if that event proves too little, or the lease does not allow a grant: the waiter
    /// lists the queue. If the lease has lapsed, the waiter's znode may be deleted.
    fn grant_epoch(
        &mut self,
        live: &LiveSession,
        server: &ServerSession,
    ) -> Result<Option<LeaseEpoch>, LossReason> {
        let is_certain = self.is_certain(server)? && server.raw.orders_events();
        Ok(is_certain.then(|| live.grant_epoch()).flatten())
    }

    /// True if the waiter's own znode is known to exist, at an event of another znode.
    ///
    /// If both znodes are watched over one connection, every earlier event of the own znode is
    /// known. After a reconnect an earlier event may come later.
    fn is_certain(&mut self, server: &ServerSession) -> Result<bool, LossReason> {
        let is_same_connection = server.still_has_connection(self.requested_over);
        match &mut self.watch {
            Some(watch) => Ok(watch.is_certain()? && is_same_connection),
            None => Ok(false),
        }
    }
}

type Read = Pending<(Vec<u8>, Stat, Watch)>;

/// Contenders may leave before they are watched, a few times in a row, without a pause.
fn look_pace() -> Backoff {
    Backoff::default().skip_first(4)
}

impl Predecessors {
    /// The contenders at the places `on`, for the waiter behind the last of `up_to_me`.
    pub(crate) fn new(
        queue: &SessionQueue<'_>,
        up_to_me: &[Contender],
        on: Vec<usize>,
        data: Option<Vec<u8>>,
    ) -> Predecessors {
        let rule = &*queue.setup.rule;
        let awaited = |place: usize| Predecessor {
            path: queue.child(up_to_me[place].name()),
            czxid: up_to_me[place].czxid(),
            grants_on_mark: grants_on_mark(rule, up_to_me, place),
            grants_on_deletion: grants_on_deletion(rule, up_to_me, place),
        };
        Predecessors {
            contenders: on.into_iter().map(awaited).collect(),
            position: up_to_me.len() - 1,
            data,
        }
    }

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
    pub(crate) fn report(&self, attempt: &AttemptRecord, queue: &SessionQueue<'_>, me: &Znode) {
        if let Some(last) = self.contenders.last() {
            attempt.waits(queue.name(&last.path), self.position);
        }
        // The session may hold a hundred thousand, so they are asked for contenders of it only.
        let awaited = self.contenders.iter().map(|it| it.path.as_str());
        for path in
            awaited.filter(|path| are_of_one_session(queue.name(path), queue.name(me.path())))
        {
            queue.open.warn_of_own_wait(me.path(), path);
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/wait.rs"]
mod tests;
