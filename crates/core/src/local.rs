//! The local queue: tasks of one process that want the same lock.
//!
//! They queue here, first in, first out, and one of them at a time is in the queue on the server.
//! A release may hand the lock to the next one here without a word to the server, as many times in
//! a row as was allowed; then the other processes get their turn.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use crate::hold::Grant;
use crate::sync::lock;

/// The queue of one process for one lock.
#[derive(Clone)]
pub(crate) struct LocalQueue {
    shared: Arc<Shared>,
}

struct Shared {
    handovers_in_a_row: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: bool,
    waiters: VecDeque<oneshot::Sender<Turn>>,
}

/// What the next in the local queue gets.
pub(crate) enum Turn {
    /// The right to enter the queue on the server.
    Enter(LocalTurn),
    /// The lock itself.
    Granted(Grant, LocalTurn),
}

/// The front of the local queue. Dropped, it goes to the next one.
pub(crate) struct LocalTurn {
    /// `None` once it has been passed on.
    queue: Option<Arc<Shared>>,
    handovers: u32,
}

impl LocalQueue {
    pub(crate) fn new(handovers_in_a_row: u32) -> LocalQueue {
        LocalQueue {
            shared: Arc::new(Shared {
                handovers_in_a_row,
                state: Mutex::default(),
            }),
        }
    }

    /// Waits for one's turn.
    ///
    /// Cancel safe: a turn that has come to a waiter that has gone goes on to the next.
    pub(crate) async fn turn(&self) -> Turn {
        loop {
            let waiting = {
                let mut state = lock(&self.shared.state);
                if !std::mem::replace(&mut state.taken, true) {
                    return Turn::Enter(LocalTurn::new(self.shared.clone()));
                }
                if state.waiters.len() == state.waiters.capacity() {
                    // Those who gave up would otherwise pile up behind a long hold.
                    state.waiters.retain(|waiter| !waiter.is_closed());
                }
                let (sender, receiver) = oneshot::channel();
                state.waiters.push_back(sender);
                receiver
            };
            // The sender is dropped only together with the queue, which this task has a part of.
            if let Ok(turn) = waiting.await {
                return turn;
            }
        }
    }

    /// The turn, if nobody has it.
    pub(crate) fn try_turn(&self) -> Option<LocalTurn> {
        let mut state = lock(&self.shared.state);
        if std::mem::replace(&mut state.taken, true) {
            return None;
        }
        Some(LocalTurn::new(self.shared.clone()))
    }
}

impl LocalTurn {
    fn new(queue: Arc<Shared>) -> LocalTurn {
        LocalTurn {
            queue: Some(queue),
            handovers: 0,
        }
    }

    /// Gives the lock to the next one here, or both back where there is none or it is the other
    /// processes' turn.
    pub(crate) fn hand_over(mut self, mut grant: Grant) -> Option<(Grant, LocalTurn)> {
        let Some(queue) = self.queue.clone() else {
            return Some((grant, self));
        };
        if self.handovers >= queue.handovers_in_a_row || !grant.is_held() {
            return Some((grant, self));
        }
        self.handovers += 1;
        let mut turn = self;
        loop {
            let next = lock(&queue.state).waiters.pop_front();
            let Some(next) = next else {
                return Some((grant, turn));
            };
            match next.send(Turn::Granted(grant, turn)) {
                Err(Turn::Granted(grant_back, turn_back)) => {
                    (grant, turn) = (grant_back, turn_back);
                }
                Ok(()) | Err(Turn::Enter(_)) => return None,
            }
        }
    }
}

impl Drop for LocalTurn {
    fn drop(&mut self) {
        let Some(queue) = self.queue.take() else {
            return;
        };
        loop {
            let mut state = lock(&queue.state);
            let Some(next) = state.waiters.pop_front() else {
                state.taken = false;
                return;
            };
            drop(state);
            match next.send(Turn::Enter(LocalTurn::new(queue.clone()))) {
                Ok(()) => return,
                // Its waiter has gone: emptied, or dropping it would come back here, deeper.
                Err(Turn::Enter(mut turn) | Turn::Granted(_, mut turn)) => turn.queue = None,
            }
        }
    }
}

impl fmt::Debug for LocalQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.shared.state);
        formatter
            .debug_struct("LocalQueue")
            .field("taken", &state.taken)
            .field("waiters", &state.waiters.len())
            .finish()
    }
}
