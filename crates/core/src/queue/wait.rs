//! The watches that a waiter keeps.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, select_all};

use super::attempt::{Attempt, Awaited};
use super::entry::Entry;
use super::unwatched::{Learned, Unwatched};
use crate::backoff::Backoff;
use crate::ensemble::{Event, Watch};
use crate::error::{Error, Refusal, ServerError};
use crate::loss_watch::{LossWatch, Standing, Watched};
use crate::node::OwnNode;
use crate::sweep;
use crate::watch_budget::{Kind, Purpose, Reserved};
use crate::watching::keeping;

/// What a waiter watches, kept from one look at the queue to the next as far as it is still of
/// use.
pub(super) struct Wait {
    /// On the waiter's own znode.
    pub(super) loss_watch: Option<LossWatch>,
    /// On the directory's data.
    directory: Option<Watch>,
    /// On the directory's children.
    parent: Option<Watch>,
    /// On those waited on, by their names.
    watches: BTreeMap<String, Watch>,
    /// Ready once events may have come in another order than they happened in: when the connection
    /// has broken over which the youngest of the watches was set.
    disconnected: Option<BoxFuture<'static, ()>>,
    /// Room that was waited for, for the watches that are to be set next.
    room: Option<Reserved>,
    look_again: Backoff,
}

impl Default for Wait {
    fn default() -> Wait {
        Wait {
            loss_watch: None,
            directory: None,
            parent: None,
            watches: BTreeMap::new(),
            disconnected: None,
            room: None,
            look_again: may_happen(),
        }
    }
}

/// That those waited on are gone before they are watched may happen a few times in a row.
fn may_happen() -> Backoff {
    Backoff::after(4, Duration::from_secs(1))
}

enum Woken {
    OwnGone,
    /// The directory's data has changed, or nothing more will be told of somebody waited on.
    Changed,
    /// The znode of the contender with this name has gone.
    Gone(String),
    /// Somebody has written to the znode of the contender with this name.
    Written(String),
    /// There is room for the watches that are missing.
    Room(Reserved),
}

/// What a waiter has learned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// That it holds.
    Handover,
    /// That it may hold, if it looks.
    LookAgain,
}

impl Wait {
    /// Waits until one of these contenders may have gone, or the directory's data has changed.
    pub(super) async fn wait_on<'v>(
        &mut self,
        attempt: &'v Attempt<'v>,
        entry: &Entry,
        on: &[Awaited],
    ) -> Result<Waited, Error> {
        let names: Vec<&str> = on.iter().map(|awaited| awaited.name.as_str()).collect();
        self.watches
            .retain(|name, _| names.contains(&name.as_str()));
        loop {
            let mut unwatched = None;
            match self.set_watches(attempt, entry, &names).await? {
                Set::All => self.look_again = may_happen(),
                Set::NoRoom(missing) => unwatched = Some(missing),
                Set::Gone(name) if stands_alone(on, &name) => {
                    return self.has_its_turn(attempt, entry).await;
                }
                Set::Gone(_) | Set::LookAgain => {
                    self.look_again.wait().await;
                    return Ok(Waited::LookAgain);
                }
            }
            let learned = async {
                match &mut unwatched {
                    Some(unwatched) => unwatched.next().await,
                    None => std::future::pending().await,
                }
            };
            let woken = tokio::select! {
                biased;
                woken = self.next() => woken,
                learned = learned => learned?.into(),
            };
            match woken {
                Woken::OwnGone => return Err(attempt.deleted(entry).await),
                Woken::Gone(name) if stands_alone(on, &name) => {
                    return self.has_its_turn(attempt, entry).await;
                }
                Woken::Gone(_) | Woken::Changed => return Ok(Waited::LookAgain),
                Woken::Written(name) if hands_over(on, &name) => {
                    return self.has_its_turn(attempt, entry).await;
                }
                // It says nothing about its going: watched anew, unless it has gone with it.
                Woken::Written(_) => {}
                Woken::Room(room) => self.room = Some(room),
            }
        }
    }

    /// Nobody is left before the waiter. It holds if its own znode stands for certain.
    async fn has_its_turn(
        &mut self,
        attempt: &Attempt<'_>,
        entry: &Entry,
    ) -> Result<Waited, Error> {
        match self.look_at_own() {
            Standing::Certain => Ok(Waited::Handover),
            Standing::Doubtful => Ok(Waited::LookAgain),
            Standing::Gone => Err(attempt.deleted(entry).await),
        }
    }

    /// Whether one's own znode stands at the moment of what has just been seen of another.
    ///
    /// What has happened to it before that is known by now, if both were told over one connection;
    /// after another it may be told later.
    fn look_at_own(&mut self) -> Standing {
        let same_connection = match &mut self.disconnected {
            Some(disconnected) => disconnected.now_or_never().is_none(),
            None => false,
        };
        match self.loss_watch.as_mut().map(LossWatch::look) {
            Some(Standing::Certain) if same_connection => Standing::Certain,
            Some(Standing::Gone) => Standing::Gone,
            _ => Standing::Doubtful,
        }
    }

    /// Sets the watches that are missing, all sent before the first answer is waited for.
    async fn set_watches<'v>(
        &mut self,
        attempt: &'v Attempt<'v>,
        entry: &Entry,
        names: &[&str],
    ) -> Result<Set<'v>, Error> {
        let server = &attempt.server;
        let own_path = self.loss_watch.is_none().then(|| entry.path());
        let directory_path = (self.directory.is_none() && attempt.queue.rule.reads_directory())
            .then(|| attempt.queue.directory.as_str());
        let other_paths: Vec<(&str, String)> = names
            .iter()
            .filter(|name| !self.watches.contains_key(**name))
            .map(|name| (*name, attempt.child(name)))
            .collect();
        let purpose = match names {
            [_] => Purpose::Wait,
            _ => Purpose::Window,
        };
        let others = other_paths.iter().map(|(_, path)| path.as_str());
        let paths = own_path.into_iter().chain(directory_path).chain(others);
        let wanted = paths.map(|path| (Kind::Data, path));
        let Some(mut room) = self.reserve(attempt, purpose, wanted) else {
            let missing = Unwatched::new(attempt, purpose, own_path, directory_path, &other_paths);
            return Ok(Set::NoRoom(missing));
        };

        if own_path.is_some() || !other_paths.is_empty() {
            self.disconnected = Some(server.disconnected());
        }
        let own = own_path.map(|path| server.get_and_watch(path));
        let directory = directory_path.map(|path| server.get_and_watch(path));
        let others: Vec<_> = other_paths
            .iter()
            .map(|(_, path)| server.get_and_watch(path))
            .collect();

        let mut set = Set::All;
        if let (Some(path), Some(own)) = (own_path, own) {
            match own.await {
                Ok((_, stat, watch)) => {
                    let mut node = OwnNode::unique(attempt.live, path);
                    if entry.marks {
                        node = node.written_by_owner_alone(true);
                    }
                    let watched = Watched {
                        live: attempt.live.clone(),
                        server: server.clone(),
                        node,
                    };
                    if watched.gone(&stat).is_some() {
                        return Err(entry.deleted());
                    }
                    let room = room.take(Kind::Data, path);
                    self.loss_watch = Some(LossWatch::armed(watched, watch, room));
                }
                Err(error) if error.is(Refusal::NoNode) => return Err(entry.deleted()),
                Err(ServerError::OutcomeUnknown(_)) => set = Set::LookAgain,
                Err(error) => return Err(attempt.failed(error)),
            }
        }
        if let (Some(path), Some(directory)) = (directory_path, directory) {
            match directory.await {
                Ok((data, _, watch)) => {
                    self.directory = Some(kept(attempt, Kind::Data, path, watch, &mut room));
                    // It may have changed since the rule was asked.
                    if attempt.learn(Some(data))? {
                        set = Set::LookAgain;
                    }
                }
                Err(ServerError::OutcomeUnknown(_)) => set = Set::LookAgain,
                Err(error) => return Err(attempt.failed(error)),
            }
        }
        let mut gone = None;
        for ((name, path), other) in other_paths.iter().zip(others) {
            match other.await {
                Ok((_, _, watch)) => {
                    let watch = kept(attempt, Kind::Data, path, watch, &mut room);
                    self.watches.insert((*name).to_owned(), watch);
                }
                Err(error) if error.is(Refusal::NoNode) => gone = Some((*name).to_owned()),
                Err(ServerError::OutcomeUnknown(_)) => set = Set::LookAgain,
                Err(error) => return Err(attempt.failed(error)),
            }
        }
        Ok(gone.map_or(set, Set::Gone))
    }

    fn reserve<'p>(
        &mut self,
        attempt: &Attempt<'_>,
        purpose: Purpose,
        wanted: impl Iterator<Item = (Kind, &'p str)>,
    ) -> Option<Reserved> {
        let reserved = attempt.live.watch_budget().try_reserve(purpose, wanted);
        // Given back only now: what was reserved already takes no more room.
        self.room = None;
        reserved
    }

    /// Waits for the first of the watches.
    async fn next(&mut self) -> Woken {
        let own = async {
            match &mut self.loss_watch {
                Some(loss_watch) => loss_watch.gone().await,
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
            match self.watches.is_empty() {
                true => std::future::pending().await,
                false => select_all(self.watches.values_mut()).await,
            }
        };
        let woken = tokio::select! {
            // When one's own deletion and another's are both known, one's own counts.
            biased;
            _ = own => return Woken::OwnGone,
            _ = directory => None,
            (event, index, _) = other => Some((event, index)),
        };
        let Some((event, index)) = woken else {
            self.directory = None;
            return Woken::Changed;
        };
        let name = self.watches.keys().nth(index).cloned().unwrap_or_default();
        self.watches.remove(&name);
        match event {
            Event::DataChanged | Event::Created | Event::ChildrenChanged => Woken::Written(name),
            Event::Deleted => Woken::Gone(name),
            Event::SessionEnded(_) => Woken::Changed,
        }
    }

    /// Waits until the directory may have changed, and lists it.
    pub(super) async fn wait_on_parent(
        &mut self,
        attempt: &Attempt<'_>,
    ) -> Result<Vec<String>, Error> {
        let mut condition = attempt.live.subscribe();
        let reconnects = condition.borrow_and_update().reconnects;
        if let Some(watch) = self.parent.take() {
            // A watch on children can be overtaken at a reconnect, so that is a reason to look.
            let reconnected = async {
                // An error means that the session is over, which ends the whole attempt.
                let _ = condition.wait_for(|now| now.reconnects != reconnects).await;
            };
            let directory = self.directory.take();
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
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        let path = attempt.queue.directory.as_str();
        loop {
            let reads = attempt.queue.rule.reads_directory();
            let wanted = [(Kind::Children, path), (Kind::Data, path)];
            let Some(mut room) = self.reserve(attempt, Purpose::Wait, wanted.into_iter()) else {
                tokio::select! {
                    biased;
                    room = attempt.live.watch_budget().reserve(Purpose::Wait, &wanted) => {
                        self.room = Some(room);
                    }
                    () = tokio::time::sleep(sweep::interval(attempt.live)) => {
                        return attempt.list().await;
                    }
                }
                continue;
            };
            // In this order: what the directory says must be no older than who is in it.
            let names = attempt.server.list_and_watch(path);
            let data = reads.then(|| attempt.server.get_and_watch(path));
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
                    self.parent = Some(kept(attempt, Kind::Children, path, watch, &mut room));
                    if let Some((data, _, watch)) = data {
                        attempt.learn(Some(data))?;
                        self.directory = Some(kept(attempt, Kind::Data, path, watch, &mut room));
                    }
                    return Ok(names);
                }
                Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                Err(error) if ServerError::is(&error, Refusal::NoNode) => return Ok(Vec::new()),
                Err(error) => return Err(attempt.failed(error)),
            }
        }
    }
}

fn hands_over(on: &[Awaited], name: &str) -> bool {
    on.iter()
        .any(|awaited| awaited.name == name && awaited.hands_over)
}

fn stands_alone(on: &[Awaited], name: &str) -> bool {
    on.iter()
        .any(|awaited| awaited.name == name && awaited.stands_alone)
}

enum Set<'v> {
    /// All watches stand.
    All,
    /// Those that stood do; for the others there is no room.
    NoRoom(Unwatched<'v>),
    /// All do, except that the contender with this name has gone.
    Gone(String),
    /// Something has changed meanwhile, or may have.
    LookAgain,
}

impl From<Learned> for Woken {
    fn from(learned: Learned) -> Woken {
        match learned {
            Learned::OwnGone => Woken::OwnGone,
            Learned::Changed => Woken::Changed,
            Learned::Room(room) => Woken::Room(room),
        }
    }
}

/// A watch that a waiter has just set, with its part of the room.
fn kept(attempt: &Attempt<'_>, kind: Kind, path: &str, watch: Watch, room: &mut Reserved) -> Watch {
    keeping(attempt.live, kind, path, watch, room.take(kind, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::ServerSession;
    use crate::scripted::Scripted;

    /// The server tells what was missed in any order.
    #[tokio::test(start_paused = true)]
    async fn own_znode_is_in_doubt_once_the_connection_has_broken() {
        let (live, server) = Scripted::open(Duration::from_millis(1));
        let watched = Watched {
            node: OwnNode::unique(&live, "/own"),
            live,
            server: server.clone(),
        };
        let mut wait = Wait {
            loss_watch: Some(LossWatch::armed(
                watched,
                std::future::pending().boxed(),
                None,
            )),
            disconnected: Some(server.disconnected()),
            ..Wait::default()
        };
        assert_eq!(wait.look_at_own(), Standing::Certain);
        server.reconnect(1);
        assert_eq!(wait.look_at_own(), Standing::Doubtful);
    }
}
