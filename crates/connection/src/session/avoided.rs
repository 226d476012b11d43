//! Requests at which servers close the connection, because they do not know them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// After this many connections in a row that broke at the request, it is not sent for a while.
const MOST_BREAKS: u32 = 3;
/// The first pause. Each further break at the request doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(600);
const MOST_DOUBLINGS: u32 = 10;

/// The requests that are not worth a try at the servers of one ensemble, for now.
///
/// Some servers close the connection at a request that they do not know, and answer the reconnect
/// with a new session. So share this between the sessions of an ensemble, one after the other: a
/// clone shares what is known.
///
/// Connections break for other reasons, too. So a request is tried again after a pause, which grows.
#[derive(Clone, Debug, Default)]
pub struct Avoided {
    removal: Arc<Mutex<Breaks>>,
}

#[derive(Debug, Default)]
struct Breaks {
    number: u32,
    until: Duration,
}

impl Avoided {
    /// Every request is worth a try.
    pub fn new() -> Avoided {
        Avoided::default()
    }

    /// True if watches must not be removed now.
    pub(crate) fn removes_no_watch(&self, now: Duration) -> bool {
        let removal = self.lock();
        removal.number >= MOST_BREAKS && now < removal.until
    }

    /// A server has closed the connection at the removal of a watch.
    pub(crate) fn closed_at_removal(&self, now: Duration) {
        let mut removal = self.lock();
        removal.number = removal.number.saturating_add(1);
        let doublings = removal.number.saturating_sub(MOST_BREAKS);
        removal.until = now + FIRST_PAUSE * 2_u32.pow(doublings.min(MOST_DOUBLINGS));
    }

    /// A server has answered the removal of a watch.
    pub(crate) fn removed(&self) {
        *self.lock() = Breaks::default();
    }

    fn lock(&self) -> MutexGuard<'_, Breaks> {
        self.removal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_tried_again_after_pauses_that_grow_until_it_is_answered() {
        let avoided = Avoided::new();
        let removal = avoided.clone();
        let mut now = Duration::from_secs(5);
        for _ in 0..MOST_BREAKS {
            assert!(!avoided.removes_no_watch(now));
            removal.closed_at_removal(now);
        }
        let mut pause = FIRST_PAUSE;
        for _ in 0..20 {
            assert!(avoided.removes_no_watch(now + pause - Duration::from_millis(1)));
            now += pause;
            assert!(!avoided.removes_no_watch(now));
            removal.closed_at_removal(now);
            pause = (pause * 2).min(FIRST_PAUSE * 2_u32.pow(MOST_DOUBLINGS));
        }
        removal.removed();
        assert!(!avoided.removes_no_watch(now));
    }
}
