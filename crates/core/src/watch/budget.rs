//! The watch budget: how many bytes of paths a session may watch.
//!
//! At a reconnect, the client library sends all watched paths to the server. If the paths are
//! longer than 128 KiB, the library sends several requests and confuses their answers. The session
//! is then lost after some reconnects (zookeeper-client 0.11.2). So each session counts the bytes
//! of the paths that it watches. If the budget is used up, the [sweep](crate::watch::sweep) reads
//! the znode instead.
//!
//! The client library sends each path once for each kind of watch, for any number of watchers. So
//! the budget, too, counts a path once for each kind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::session::live::{Attachment, LiveSession};
use crate::sync::lock;

/// The whole budget. The rest up to the client's limit is for watches that are being set.
const MOST_BYTES: usize = 96 * 1024;
/// The part of the budget that only waiters with a single predecessor may use.
const FOR_WAITERS_ALONE: usize = MOST_BYTES / 4;
/// If fewer bytes than this are left, no watcher is woken to try.
const WORTH_A_TRY: usize = 512;

/// The kind of a watch. A server keeps one list of paths for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The watch is for the znode's data and its deletion.
    Data,
    /// The watch is for the znode's creation, data and deletion.
    Existence,
    /// The watch is for the znode's children.
    Children,
}

/// The purpose of a watch. Each purpose has its share of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A waiter waits for one contender.
    Wait,
    /// A waiter waits for the first of several contenders that is deleted.
    Window,
    /// A holder's loss watch waits for the deletion of its own znode.
    Loss,
    /// An observer watches the leader of an election.
    Observe,
}

const PURPOSES: [Purpose; 4] = [
    Purpose::Wait,
    Purpose::Window,
    Purpose::Loss,
    Purpose::Observe,
];

impl Purpose {
    /// The bytes that may be watched for this purpose.
    fn share(self) -> usize {
        match self {
            Purpose::Wait => MOST_BYTES,
            Purpose::Window => MOST_BYTES / 2,
            Purpose::Loss | Purpose::Observe => MOST_BYTES / 3,
        }
    }

    /// The bytes that all purposes may watch when this purpose adds a watch.
    fn most_in_all(self) -> usize {
        match self {
            Purpose::Wait => MOST_BYTES,
            _ => MOST_BYTES - FOR_WAITERS_ALONE,
        }
    }
}

/// The watch budget of one session.
#[derive(Clone)]
pub(crate) struct WatchBudget {
    shared: Arc<Shared>,
}

struct Shared {
    chroot: usize,
    used: Mutex<Used>,
    /// Wakes the watchers that wait for budget, for each purpose.
    freed: [Notify; PURPOSES.len()],
}

#[derive(Default)]
struct Used {
    /// The number of watchers of each path, for each kind and purpose.
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

    /// The bytes left for this purpose. `None` if more bytes are used than allowed.
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

    /// The bytes that a watch on this path takes.
    fn bytes(&self, path: &str) -> usize {
        // A request has the length of each path before the path.
        self.shared.chroot + path.len() + size_of::<i32>()
    }

    /// Reserves budget for watches on all these paths, or for none of them.
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
        // A path that is watched already takes no more bytes.
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

    /// Waits until there is budget for all these watches, and reserves it.
    ///
    /// A watcher that needs more than is left does not block other watchers. Watchers with similar
    /// needs are served in the order of their calls. May wait for ever.
    pub(crate) async fn reserve(&self, purpose: Purpose, wanted: &[(Kind, &str)]) -> Reserved {
        let freed = &self.shared.freed[purpose as usize];
        loop {
            let told = freed.notified();
            if let Some(reserved) = self.try_reserve(purpose, wanted.iter().copied()) {
                // The rest may be enough for the next watcher.
                if lock(&self.shared.used).is_worth_a_try(purpose) {
                    freed.notify_one();
                }
                return reserved;
            }
            told.await;
        }
    }

    /// Wakes all watchers that wait for budget, if some is left.
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

/// A reserved part of the budget. A drop gives it back.
pub(crate) struct Reserved {
    room: WatchBudget,
    purpose: Purpose,
    paths: Vec<(Kind, Arc<str>)>,
}

impl Reserved {
    /// Splits off the part for a watch on this path, if it is reserved here.
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

    /// Moves the reservation to another purpose. False if the share of that purpose is too small.
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
        // Each path takes 64 bytes.
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
        // `large` was woken and finds too little, so `small` waits until all try again.
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
