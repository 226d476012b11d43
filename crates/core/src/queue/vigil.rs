//! The watches that a waiter keeps.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, select_all};

use super::entry::Entry;
use super::visit::{Awaited, Visit};
use crate::alarm::{Alarm, Standing, Watched};
use crate::backoff::Backoff;
use crate::ensemble::{Event, Watch};
use crate::error::{Error, Refusal, ServerError};
use crate::watch_room::Reserved;

/// What a waiter watches, kept from one look at the queue to the next as far as it is still of
/// use.
pub(super) struct Vigil {
    /// On the waiter's own znode.
    pub(super) alarm: Option<Alarm>,
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

impl Default for Vigil {
    fn default() -> Vigil {
        Vigil {
            alarm: None,
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
}

/// What a waiter has learned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// That it holds.
    Handover,
    /// That it may hold, if it looks.
    LookAgain,
}

impl Vigil {
    /// Waits until one of these contenders may have gone, or the directory's data has changed.
    pub(super) async fn wait_on(
        &mut self,
        visit: &Visit<'_>,
        entry: &Entry,
        on: &[Awaited],
    ) -> Result<Waited, Error> {
        let names: Vec<&str> = on.iter().map(|awaited| awaited.name.as_str()).collect();
        self.watches
            .retain(|name, _| names.contains(&name.as_str()));
        loop {
            match self.set_watches(visit, entry, &names).await? {
                Set::All => self.look_again = may_happen(),
                Set::Gone(name) if stands_alone(on, &name) => {
                    return self.has_its_turn(visit, entry).await;
                }
                Set::Gone(_) | Set::LookAgain => {
                    self.look_again.wait().await;
                    return Ok(Waited::LookAgain);
                }
            }
            match self.next().await {
                Woken::OwnGone => return Err(visit.deleted(entry).await),
                Woken::Gone(name) if stands_alone(on, &name) => {
                    return self.has_its_turn(visit, entry).await;
                }
                Woken::Gone(_) | Woken::Changed => return Ok(Waited::LookAgain),
                Woken::Written(name) if hands_over(on, &name) => {
                    return self.has_its_turn(visit, entry).await;
                }
                // It says nothing about its going: watched anew, unless it has gone with it.
                Woken::Written(_) => {}
            }
        }
    }

    /// Nobody is left before the waiter. It holds if its own znode stands for certain.
    async fn has_its_turn(&mut self, visit: &Visit<'_>, entry: &Entry) -> Result<Waited, Error> {
        match self.look_at_own() {
            Standing::Certain => Ok(Waited::Handover),
            Standing::Doubtful => Ok(Waited::LookAgain),
            Standing::Gone => Err(visit.deleted(entry).await),
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
        match self.alarm.as_mut().map(Alarm::look) {
            Some(Standing::Certain) if same_connection => Standing::Certain,
            Some(Standing::Gone) => Standing::Gone,
            _ => Standing::Doubtful,
        }
    }

    /// Sets the watches that are missing, all sent before the first answer is waited for.
    async fn set_watches(
        &mut self,
        visit: &Visit<'_>,
        entry: &Entry,
        names: &[&str],
    ) -> Result<Set, Error> {
        let server = &visit.server;
        let own_path = self.alarm.is_none().then(|| entry.path());
        let directory_path = (self.directory.is_none() && visit.queue.rule.reads_directory())
            .then(|| visit.queue.directory.as_str());
        let other_paths: Vec<(&str, String)> = names
            .iter()
            .filter(|name| !self.watches.contains_key(**name))
            .map(|name| (*name, visit.child(name)))
            .collect();
        let paths = || {
            let others = other_paths.iter().map(|(_, path)| path.as_str());
            own_path.into_iter().chain(directory_path).chain(others)
        };
        let Some(mut room) = self.reserve(visit, paths()) else {
            return self.wait_for_room(visit, entry, paths()).await;
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
                    let watched = Watched {
                        live: visit.live.clone(),
                        server: server.clone(),
                        path: path.to_owned(),
                        announces: entry.announces,
                    };
                    if watched.was_written(&stat) {
                        return Err(entry.deleted());
                    }
                    let room = part(&mut room, visit, path);
                    self.alarm = Some(Alarm::armed(watched, watch, room));
                }
                Err(error) if error.is(Refusal::NoNode) => return Err(entry.deleted()),
                Err(ServerError::OutcomeUnknown(_)) => set = Set::LookAgain,
                Err(error) => return Err(visit.failed(error)),
            }
        }
        if let (Some(path), Some(directory)) = (directory_path, directory) {
            match directory.await {
                Ok((data, _, watch)) => {
                    self.directory = Some(keeping(watch, part(&mut room, visit, path)));
                    // It may have changed since the rule was asked.
                    if visit.learn(Some(data))? {
                        set = Set::LookAgain;
                    }
                }
                Err(ServerError::OutcomeUnknown(_)) => set = Set::LookAgain,
                Err(error) => return Err(visit.failed(error)),
            }
        }
        let mut gone = None;
        for ((name, path), other) in other_paths.iter().zip(others) {
            match other.await {
                Ok((_, _, watch)) => {
                    let watch = keeping(watch, part(&mut room, visit, path));
                    self.watches.insert((*name).to_owned(), watch);
                }
                Err(error) if error.is(Refusal::NoNode) => gone = Some((*name).to_owned()),
                Err(ServerError::OutcomeUnknown(_)) => set = Set::LookAgain,
                Err(error) => return Err(visit.failed(error)),
            }
        }
        Ok(match (set, gone) {
            (Set::All, Some(name)) => Set::Gone(name),
            (set, _) => set,
        })
    }

    fn reserve<'p>(
        &mut self,
        visit: &Visit<'_>,
        paths: impl Iterator<Item = &'p str>,
    ) -> Option<Reserved> {
        let wanted = visit.live.watch_room().bytes_of(paths);
        match self.room.take() {
            Some(room) if room.num_permits() >= wanted as usize => Some(room),
            _ => visit.live.watch_room().try_reserve(wanted),
        }
    }

    /// Without room for the watches, looks at the znodes from time to time.
    async fn wait_for_room<'p>(
        &mut self,
        visit: &Visit<'_>,
        entry: &Entry,
        paths: impl Iterator<Item = &'p str> + Clone,
    ) -> Result<Set, Error> {
        let wanted = visit.live.watch_room().bytes_of(paths.clone());
        let looks = async {
            let mut looked_at: Vec<String> = paths.map(str::to_owned).collect();
            // Whatever is already watched need not be looked at, but oneself must be.
            looked_at.push(entry.path().to_owned());
            loop {
                tokio::time::sleep(visit.live.timeout() / 2).await;
                match visit.server.get_each(&looked_at).await {
                    Ok(nodes) if nodes.last().is_some_and(Option::is_none) => {
                        return Err(entry.deleted());
                    }
                    Ok(nodes) if nodes.iter().any(Option::is_none) => return Ok(()),
                    Ok(_) | Err(ServerError::OutcomeUnknown(_)) => {}
                    Err(error) => return Err(visit.failed(error)),
                }
            }
        };
        tokio::select! {
            biased;
            room = visit.live.watch_room().reserve(wanted) => self.room = Some(room),
            looked = looks => looked?,
        }
        Ok(Set::LookAgain)
    }

    /// Waits for the first of the watches.
    async fn next(&mut self) -> Woken {
        let own = async {
            match &mut self.alarm {
                Some(alarm) => alarm.gone().await,
                None => std::future::pending().await,
            }
        };
        let directory = async {
            match &mut self.directory {
                Some(watch) => watch.await,
                None => std::future::pending().await,
            }
        };
        let woken = tokio::select! {
            // When one's own deletion and another's are both known, one's own counts.
            biased;
            _ = own => return Woken::OwnGone,
            _ = directory => None,
            (event, index, _) = select_all(self.watches.values_mut()) => Some((event, index)),
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
    pub(super) async fn wait_on_parent(&mut self, visit: &Visit<'_>) -> Result<Vec<String>, Error> {
        let mut condition = visit.live.subscribe();
        let reconnects = condition.borrow_and_update().reconnects;
        if let Some(watch) = self.parent.take() {
            // A watch on children can be overtaken at a reconnect, so that is a reason to look.
            let reconnected = async {
                // An error means that the session is over, which ends the whole visit.
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
        let path = visit.queue.directory.as_str();
        loop {
            let reads = visit.queue.rule.reads_directory();
            let Some(mut room) = self.reserve(visit, [path, path].into_iter()) else {
                let wanted = visit.live.watch_room().bytes_of([path, path].into_iter());
                tokio::select! {
                    biased;
                    room = visit.live.watch_room().reserve(wanted) => self.room = Some(room),
                    () = tokio::time::sleep(visit.live.probe_interval()) => {
                        return visit.list().await;
                    }
                }
                continue;
            };
            // In this order: what the directory says must be no older than who is in it.
            let names = visit.server.list_and_watch(path);
            let data = reads.then(|| visit.server.get_and_watch(path));
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
                    self.parent = Some(keeping(watch, part(&mut room, visit, path)));
                    if let Some((data, _, watch)) = data {
                        visit.learn(Some(data))?;
                        self.directory = Some(keeping(watch, part(&mut room, visit, path)));
                    }
                    return Ok(names);
                }
                Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                Err(error) if ServerError::is(&error, Refusal::NoNode) => return Ok(Vec::new()),
                Err(error) => return Err(visit.failed(error)),
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

enum Set {
    /// All watches stand.
    All,
    /// They do, except that the contender with this name has gone.
    Gone(String),
    /// Something has changed meanwhile, or may have.
    LookAgain,
}

/// The part of the room that a watch on this path takes.
fn part(room: &mut Reserved, visit: &Visit<'_>, path: &str) -> Option<Reserved> {
    room.split(visit.live.watch_room().bytes(path) as usize)
}

/// A watch that gives its room back when it has resolved or is dropped.
fn keeping(watch: Watch, room: Option<Reserved>) -> Watch {
    async move {
        let event = watch.await;
        drop(room);
        event
    }
    .boxed()
}
