//! How much a session may watch.
//!
//! At a reconnect the client library tells the server all watched paths anew. If they are more
//! than 128 KiB, it does so in several requests, whose answers it confuses, and the session is
//! lost after some reconnects (zookeeper-client 0.11.2). So each session counts the bytes of the
//! paths that it watches, and a watcher that finds no room has the path looked at by the
//! [sweep](crate::watch::sweep) instead.
//!
//! The client tells the server each path once for each kind of watch, however many wait for it.
//! So a path counts once for each kind, too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::session::live::{Attachment, LiveSession};
use crate::sync::lock;

/// The whole room, which leaves some below the client's limit for requests on their way.
const MOST_BYTES: usize = 96 * 1024;
/// What only waiters with a single predecessor may use.
const FOR_WAITERS_ALONE: usize = MOST_BYTES / 4;
/// With less room than this, nobody is told to try.
const WORTH_A_TRY: usize = 512;

/// What a watch tells of. A server keeps a list of paths for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The znode's data, and its deletion.
    Data,
    /// The znode's creation, data and deletion.
    Existence,
    /// The znode's children.
    Children,
}

/// What a watch is for. Each purpose has its share of the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To wait for one contender.
    Wait,
    /// To wait for the first of many contenders.
    Window,
    /// To learn that a hold's own znode has gone.
    Loss,
    /// To observe who leads.
    Observe,
}

const PURPOSES: [Purpose; 4] = [
    Purpose::Wait,
    Purpose::Window,
    Purpose::Loss,
    Purpose::Observe,
];

impl Purpose {
    /// How much may be watched for this purpose.
    fn share(self) -> usize {
        match self {
            Purpose::Wait => MOST_BYTES,
            Purpose::Window => MOST_BYTES / 2,
            Purpose::Loss | Purpose::Observe => MOST_BYTES / 3,
        }
    }

    /// How much may be watched in all once something is watched for this purpose.
    fn most_in_all(self) -> usize {
        match self {
            Purpose::Wait => MOST_BYTES,
            _ => MOST_BYTES - FOR_WAITERS_ALONE,
        }
    }
}

/// The room for watched paths in one session.
#[derive(Clone)]
pub(crate) struct WatchBudget {
    shared: Arc<Shared>,
}

struct Shared {
    chroot: usize,
    used: Mutex<Used>,
    /// Tells those who wait for room, for each purpose.
    freed: [Notify; PURPOSES.len()],
}

#[derive(Default)]
struct Used {
    /// How many watch each path, for each kind and purpose.
    paths: [HashMap<Arc<str>, [u32; PURPOSES.len()]>; 3],
    bytes: usize,
    bytes_for: [usize; PURPOSES.len()],
}

impl Used {
    fn add(&mut self, kind: Kind, path: &str, purpose: Purpose, bytes: usize) -> Arc<str> {
        let paths = &mut self.paths[kind as usize];
        let known = paths.get_key_value(path).map(|(path, _)| path.clone());
        let path = known.unwrap_or_else(|| path.into());
        let watchers = paths.entry(path.clone()).or_default();
        if watchers.iter().all(|&number| number == 0) {
            self.bytes += bytes;
        }
        if watchers[purpose as usize] == 0 {
            self.bytes_for[purpose as usize] += bytes;
        }
        watchers[purpose as usize] += 1;
        path
    }

    fn remove(&mut self, kind: Kind, path: &str, purpose: Purpose, bytes: usize) {
        let paths = &mut self.paths[kind as usize];
        let Some(watchers) = paths.get_mut(path) else {
            return;
        };
        watchers[purpose as usize] -= 1;
        if watchers[purpose as usize] == 0 {
            self.bytes_for[purpose as usize] -= bytes;
        }
        if watchers.iter().all(|&number| number == 0) {
            self.bytes -= bytes;
            paths.remove(path);
        }
    }

    /// How much more may be watched for this purpose; less than nothing if it is too much already.
    fn left(&self, purpose: Purpose) -> Option<usize> {
        let of_share = purpose
            .share()
            .checked_sub(self.bytes_for[purpose as usize])?;
        let of_all = purpose.most_in_all().checked_sub(self.bytes)?;
        Some(of_share.min(of_all))
    }

    fn is_worth_a_try(&self, purpose: Purpose) -> bool {
        self.left(purpose).is_some_and(|left| left >= WORTH_A_TRY)
    }
}

impl Attachment for WatchBudget {
    fn attach(live: &LiveSession) -> WatchBudget {
        WatchBudget::new(live.chroot())
    }
}

impl WatchBudget {
    fn new(chroot: &str) -> WatchBudget {
        WatchBudget {
            shared: Arc::new(Shared {
                chroot: chroot.len(),
                used: Mutex::default(),
                freed: Default::default(),
            }),
        }
    }

    /// What a watch on this path takes.
    fn bytes(&self, path: &str) -> usize {
        // On the wire each path has its length before it.
        self.shared.chroot + path.len() + size_of::<i32>()
    }

    /// Reserves room for watches on these paths, if there is room for all of them.
    pub(crate) fn try_reserve<'p>(
        &self,
        purpose: Purpose,
        wanted: impl IntoIterator<Item = (Kind, &'p str)>,
    ) -> Option<Reserved> {
        let mut used = lock(&self.shared.used);
        let before = (used.bytes, used.bytes_for[purpose as usize]);
        let paths: Vec<(Kind, Arc<str>)> = wanted
            .into_iter()
            .map(|(kind, path)| (kind, used.add(kind, path, purpose, self.bytes(path))))
            .collect();
        // What is watched already takes no more room.
        let takes_none = before == (used.bytes, used.bytes_for[purpose as usize]);
        if takes_none || used.left(purpose).is_some() {
            return Some(Reserved {
                room: self.clone(),
                purpose,
                paths,
            });
        }
        for (kind, path) in &paths {
            used.remove(*kind, path, purpose, self.bytes(path));
        }
        None
    }

    /// Waits until there is room for all of these, or for ever.
    ///
    /// Nobody bars others: a watcher that needs more than there is waits on while others are
    /// served. If there is room for about the same from each, they are served in the order of
    /// their coming.
    pub(crate) async fn reserve(&self, purpose: Purpose, wanted: &[(Kind, &str)]) -> Reserved {
        let freed = &self.shared.freed[purpose as usize];
        loop {
            let told = freed.notified();
            if let Some(reserved) = self.try_reserve(purpose, wanted.iter().copied()) {
                // There may be room for the next one, too.
                if lock(&self.shared.used).is_worth_a_try(purpose) {
                    freed.notify_one();
                }
                return reserved;
            }
            told.await;
        }
    }

    /// Has all try who wait for room, if there is some.
    pub(crate) fn let_all_try(&self) {
        for purpose in PURPOSES {
            if lock(&self.shared.used).is_worth_a_try(purpose) {
                self.shared.freed[purpose as usize].notify_waiters();
            }
        }
    }

    fn give_back(&self, purpose: Purpose, paths: &[(Kind, Arc<str>)]) {
        let mut used = lock(&self.shared.used);
        for (kind, path) in paths {
            used.remove(*kind, path, purpose, self.bytes(path));
        }
        for purpose in PURPOSES {
            if used.is_worth_a_try(purpose) {
                self.shared.freed[purpose as usize].notify_one();
            }
        }
    }
}

/// A part of the room, given back when it is dropped.
pub(crate) struct Reserved {
    room: WatchBudget,
    purpose: Purpose,
    paths: Vec<(Kind, Arc<str>)>,
}

impl Reserved {
    /// The part that a watch on this path takes, if it is in here.
    pub(crate) fn take(&mut self, kind: Kind, path: &str) -> Option<Reserved> {
        let here =
            |(its_kind, its_path): &(Kind, Arc<str>)| *its_kind == kind && **its_path == *path;
        let place = self.paths.iter().position(here)?;
        Some(Reserved {
            room: self.room.clone(),
            purpose: self.purpose,
            paths: vec![self.paths.swap_remove(place)],
        })
    }

    /// Counts the same watches for another purpose, if there is room in its share.
    pub(crate) fn pass_to(&mut self, purpose: Purpose) -> bool {
        let wanted = self.paths.iter().map(|(kind, path)| (*kind, &**path));
        let passed = self.room.try_reserve(purpose, wanted);
        passed.map(|passed| *self = passed).is_some()
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.paths.is_empty() {
            self.room.give_back(self.purpose, &self.paths);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn paths(from: usize, number: usize) -> Vec<String> {
        // Each takes 64 bytes.
        let path = |place| format!("/{place:058}");
        (from..from + number).map(path).collect()
    }

    fn data(paths: &[String]) -> Vec<(Kind, &str)> {
        paths
            .iter()
            .map(|path| (Kind::Data, path.as_str()))
            .collect()
    }

    const ALL: usize = MOST_BYTES / 64;

    #[test]
    fn path_counts_once_however_many_watch_it() {
        let room = WatchBudget::new("/");
        let first = paths(0, ALL);
        let all: Vec<_> = (0..10)
            .map(|_| room.try_reserve(Purpose::Wait, data(&first)))
            .collect();
        assert!(all.iter().all(Option::is_some));
        let other = paths(ALL, 1);
        assert!(room.try_reserve(Purpose::Wait, data(&other)).is_none());
        let children = [(Kind::Children, first[0].as_str())];
        assert!(room.try_reserve(Purpose::Wait, children).is_none());
        drop(all);
        assert!(room.try_reserve(Purpose::Wait, data(&first)).is_some());
        assert_eq!(lock(&room.shared.used).bytes, 0);
        assert_eq!(lock(&room.shared.used).bytes_for, [0; 4]);
    }

    #[test]
    fn room_is_left_for_waiters_whatever_the_others_take() {
        let room = WatchBudget::new("/");
        let mut others = Vec::new();
        for (place, purpose) in [Purpose::Window, Purpose::Loss, Purpose::Observe]
            .into_iter()
            .enumerate()
        {
            let paths = paths(place * ALL, ALL);
            let mut reserved = 0;
            while let Some(one) =
                room.try_reserve(purpose, [(Kind::Data, paths[reserved].as_str())])
            {
                others.push(one);
                reserved += 1;
            }
            assert!(reserved * 64 <= purpose.share());
        }
        let used = lock(&room.shared.used).bytes;
        assert_eq!(used, MOST_BYTES - FOR_WAITERS_ALONE);
        let waiters = paths(3 * ALL, FOR_WAITERS_ALONE / 64);
        assert!(room.try_reserve(Purpose::Wait, data(&waiters)).is_some());
    }

    #[test]
    fn small_request_is_served_though_a_large_one_came_before() {
        let room = WatchBudget::new("/");
        let (most, few, large) = (paths(0, ALL - 20), paths(ALL, 20), paths(2 * ALL, 40));
        let kept = room.try_reserve(Purpose::Wait, data(&most));
        let freed = room.try_reserve(Purpose::Wait, data(&few));
        assert!(kept.is_some() && freed.is_some());
        let (large, small) = (data(&large), [(Kind::Data, "/small")]);
        let mut large = room.reserve(Purpose::Wait, &large).boxed();
        let mut small = room.reserve(Purpose::Wait, &small).boxed();
        assert!((&mut large).now_or_never().is_none());
        assert!((&mut small).now_or_never().is_none());
        drop(freed);
        // The first that was told finds too little, and tries again with the others.
        assert!((&mut large).now_or_never().is_none());
        room.let_all_try();
        assert!((&mut small).now_or_never().is_some());
        drop(kept);
        assert!((&mut large).now_or_never().is_some());
    }

    #[test]
    fn watches_pass_to_another_purpose_within_its_share() {
        let room = WatchBudget::new("/");
        let (many, few) = (paths(0, ALL / 2), paths(0, ALL / 4));
        let mut many = room.try_reserve(Purpose::Wait, data(&many)).expect("room");
        assert!(!many.pass_to(Purpose::Loss));
        drop(many);
        let mut few = room.try_reserve(Purpose::Wait, data(&few)).expect("room");
        assert!(few.pass_to(Purpose::Loss));
        assert_eq!(lock(&room.shared.used).bytes_for[Purpose::Wait as usize], 0);
    }
}
