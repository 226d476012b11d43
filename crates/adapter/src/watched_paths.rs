//! The paths that a session watches, and how many of them the client can set again.
//!
//! At a reconnect, the client sends all watched paths to the server. If they are longer than 128
//! KiB, the client sends several requests and confuses their answers. The session is then lost
//! after some reconnects (zookeeper-client 0.11.2). So a session counts the bytes of its paths.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zookeeper_recipes_connection::WatchedRead;

/// The most bytes that the recipes watch. The rest is for the watches of the client's user.
const MAX_BYTES: usize = 64 << 10;

/// Counts the watched paths of one session.
#[derive(Default)]
pub(crate) struct WatchedPaths {
    counts: Mutex<Counts>,
    was_full: AtomicBool,
}

#[derive(Default)]
struct Counts {
    /// The number of watches of each path. The client sends each path once for each kind of read.
    watches: HashMap<(WatchedRead, Arc<str>), usize>,
    bytes: usize,
}

/// The place of one watch. A drop gives it back.
pub(crate) struct Place {
    paths: Arc<WatchedPaths>,
    watched: (WatchedRead, Arc<str>),
}

impl WatchedPaths {
    /// The place of a watch of this path at the server. `None` if the paths would be too long.
    pub(crate) fn place(self: &Arc<Self>, kind: WatchedRead, path: String) -> Option<Place> {
        let mut counts = self.lock();
        let watched = (kind, path.into());
        let bytes = bytes(&watched);
        if !counts.watches.contains_key(&watched) {
            if counts.bytes + bytes > MAX_BYTES {
                self.was_full.store(true, Ordering::Relaxed);
                return None;
            }
            counts.bytes += bytes;
        }
        *counts.watches.entry(watched.clone()).or_default() += 1;
        drop(counts);
        Some(Place {
            paths: self.clone(),
            watched,
        })
    }

    /// True if a watch had no place until now.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes that a path takes in a request: its length comes before it.
fn bytes((_, path): &(WatchedRead, Arc<str>)) -> usize {
    path.len() + size_of::<i32>()
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.paths.lock();
        if let Some(watches) = counts.watches.get_mut(&self.watched) {
            *watches -= 1;
            if *watches == 0 {
                counts.watches.remove(&self.watched);
                counts.bytes -= bytes(&self.watched);
            }
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/watched_paths.rs"]
mod tests;
