//! How much a session may watch.
//!
//! At a reconnect the client library tells the server all watched paths anew. Where they are more
//! than 128 KiB it does so in several requests, whose answers it confuses, and the session is
//! lost after some reconnects (zookeeper-client 0.11.2). So the paths that a session watches are
//! counted, and whoever finds no room looks from time to time instead.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is left below the client's limit for the lengths and the rounding of others.
const MOST_BYTES: u32 = 96 * 1024;

/// The room for watched paths in one session.
#[derive(Clone, Debug)]
pub(crate) struct WatchRoom {
    free: Arc<Semaphore>,
    chroot: usize,
}

/// A part of the room, given back when it is dropped.
pub(crate) type Reserved = OwnedSemaphorePermit;

impl WatchRoom {
    pub(crate) fn new(chroot: &str) -> WatchRoom {
        WatchRoom {
            free: Arc::new(Semaphore::new(MOST_BYTES as usize)),
            chroot: chroot.len(),
        }
    }

    /// What a watch on this path takes.
    pub(crate) fn bytes(&self, path: &str) -> u32 {
        // On the wire each path has its length before it.
        u32::try_from(self.chroot + path.len() + size_of::<i32>()).unwrap_or(u32::MAX)
    }

    /// What watches on these paths take.
    pub(crate) fn bytes_of<'p>(&self, paths: impl Iterator<Item = &'p str>) -> u32 {
        paths.fold(0, |bytes, path| bytes.saturating_add(self.bytes(path)))
    }

    /// Reserves so much, if it is free.
    pub(crate) fn try_reserve(&self, bytes: u32) -> Option<Reserved> {
        self.free.clone().try_acquire_many_owned(bytes).ok()
    }

    /// Waits until so much is free, first come, first served; for ever where there is never so
    /// much.
    pub(crate) async fn reserve(&self, bytes: u32) -> Reserved {
        if bytes <= MOST_BYTES {
            if let Ok(reserved) = self.free.clone().acquire_many_owned(bytes).await {
                return reserved;
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back() {
        let room = WatchRoom::new("/app");
        let bytes = room.bytes("/locks/a");
        assert_eq!(bytes, 16);
        let all: Vec<_> = std::iter::from_fn(|| room.try_reserve(bytes)).collect();
        assert_eq!(all.len() as u32, MOST_BYTES / bytes);
        assert!(room.try_reserve(bytes).is_none());
        drop(all);
        assert!(room.try_reserve(MOST_BYTES).is_some());
        assert!(room.try_reserve(MOST_BYTES + 1).is_none());
    }
}
