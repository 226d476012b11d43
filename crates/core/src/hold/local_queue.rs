//! The local queue: tasks of one process that want the same lock.
//!
//! The tasks queue here, first in, first out. One of them at a time is in the queue on the server.
//! A release can hand the lock to the next task without a request, up to the allowed number of
//! times in a row. Then the other processes get their turn.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{Notify, oneshot};

use crate::hold::grant::Grant;
use crate::hold::grant_state::GrantState;
use crate::sync::{Mutex, MutexGuard, lock, or_never};

/// The queue of one process for one lock.
pub(crate) struct LocalQueue {
    shared: Arc<SharedTurns>,
}

struct SharedTurns {
    passes_in_a_row: u32,
    state: Mutex<State>,
    /// Wakes the waiters when another hold has the turn.
    holder_changed: Notify,
}

#[derive(Default)]
struct State {
    /// True while a task has the turn.
    is_taken: bool,
    /// The number of the current turn. A turn with another number was revoked.
    turn: u64,
    holder: Option<GrantState>,
    waiters: VecDeque<oneshot::Sender<Admission>>,
}

/// What the next task in the local queue gets: the right to enter the queue on the server.
pub(crate) struct Admission {
    /// The lock itself, if the task before hands it on.
    ///
    /// The grant is dropped before the turn: the deletion of its znode is sent before the next task
    /// enters.
    pub(crate) grant: Option<Grant>,
    pub(crate) turn: LocalTurn,
}

/// The first place in the local queue. If dropped, the next task gets the turn.
///
/// A turn that was revoked passes nothing on.
pub(crate) struct LocalTurn {
    /// `None` once it has been passed on.
    queue: Option<Arc<SharedTurns>>,
    number: u64,
    /// How many times in a row the grant was handed on.
    pub(crate) passes: u32,
}

const NEVER_FORGOTTEN: &str = "the queue keeps each waiter that has not given up";

impl LocalQueue {
    pub(crate) fn new(passes_in_a_row: u32) -> LocalQueue {
        LocalQueue {
            shared: Arc::new(SharedTurns {
                passes_in_a_row,
                state: Mutex::default(),
                holder_changed: Notify::new(),
            }),
        }
    }

    /// Waits for a turn. If the hold of a holder is lost, the next waiter takes its turn.
    ///
    /// Cancel safe: if the future is dropped, the turn goes to the next waiter.
    pub(crate) async fn turn(&self) -> Admission {
        let mut waiting = {
            let mut state = lock(&self.shared.state);
            if let Some(turn) = self.shared.take(&mut state) {
                return Admission { turn, grant: None };
            }
            if state.waiters.len() == state.waiters.capacity() {
                // Otherwise the waiters that gave up would pile up behind a long hold.
                state.waiters.retain(|waiter| !waiter.is_closed());
            }
            let (sender, receiver) = oneshot::channel();
            state.waiters.push_back(sender);
            receiver
        };
        loop {
            tokio::select! {
                biased;
                admission = &mut waiting => return admission.expect(NEVER_FORGOTTEN),
                () = self.shared.until_lost() => self.shared.pass_on_if_lost(),
            }
        }
    }

    /// True if no task has the turn or waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Takes the turn if it is free.
    ///
    /// It is also free if its hold is lost and no task waits.
    pub(crate) fn try_turn(&self) -> Option<LocalTurn> {
        self.shared.take(&mut lock(&self.shared.state))
    }
}

impl State {
    fn holder_is_lost(&self) -> bool {
        let holder = self.holder.as_ref();
        holder.is_some_and(|holder| !holder.is_held())
    }
}

impl SharedTurns {
    async fn until_lost(&self) {
        loop {
            let changed = self.holder_changed.notified();
            let holder = lock(&self.state).holder.clone();
            tokio::select! {
                biased;
                () = changed => {}
                () = or_never(holder.as_ref().map(GrantState::noticed_lost)) => return,
            }
        }
    }

    /// Takes a turn that is free, or whose hold is lost with no waiter.
    fn take(self: &Arc<Self>, state: &mut State) -> Option<LocalTurn> {
        // A waiter that gave up takes no turn.
        let has_gone = |waiter: &oneshot::Sender<_>| waiter.is_closed();
        while state.waiters.front().is_some_and(has_gone) {
            state.waiters.pop_front();
        }
        if state.is_taken && !(state.waiters.is_empty() && state.holder_is_lost()) {
            return None;
        }
        Some(self.begin_turn(state))
    }

    /// Begins a turn. If the turn before is not over, it is revoked.
    fn begin_turn(self: &Arc<Self>, state: &mut State) -> LocalTurn {
        state.is_taken = true;
        state.turn += 1;
        self.forget_holder(state);
        LocalTurn {
            queue: Some(self.clone()),
            number: state.turn,
            passes: 0,
        }
    }

    /// Forgets the hold that had the turn, and wakes the waiters if there was one.
    fn forget_holder(&self, state: &mut State) {
        if state.holder.take().is_some() {
            self.holder_changed.notify_waiters();
        }
    }

    /// Revokes the turn of a hold that is lost.
    fn pass_on_if_lost(self: &Arc<Self>) {
        let state = lock(&self.state);
        if state.is_taken && state.holder_is_lost() {
            self.pass_on(state);
        }
    }

    /// Gives the turn to the next waiter, or frees the turn if nobody waits.
    fn pass_on<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) {
        loop {
            let Some(next) = state.waiters.pop_front() else {
                state.is_taken = false;
                self.forget_holder(&mut state);
                return;
            };
            let turn = self.begin_turn(&mut state);
            drop(state);
            match next.send(Admission { turn, grant: None }) {
                Ok(()) => return,
                // Emptied, because the drop of a full turn would recurse into this function.
                Err(mut back) => back.turn.queue = None,
            }
            state = lock(&self.state);
        }
    }
}

impl LocalTurn {
    /// Notes the hold that has the turn, and wakes the waiters.
    pub(crate) fn set_holder(&self, hold: GrantState) {
        let Some(queue) = &self.queue else { return };
        let mut state = lock(&queue.state);
        if state.turn != self.number {
            return;
        }
        // The tasks of a process often hold one grant in turn. No waiter need wake then.
        let known = state.holder.as_ref();
        let is_known = known.is_some_and(|known| known.is_of_same_grant(&hold));
        // Each hold has its own time limit.
        state.holder = Some(hold);
        if !is_known {
            queue.holder_changed.notify_waiters();
        }
    }

    /// Hands the grant to the next task of the process.
    ///
    /// The grant may be lost before that task takes it, so the task checks it. If the grant goes
    /// back to the server, the method returns it. The turn is then to be dropped once the grant's
    /// znode is deleted.
    pub(crate) fn hand_on(mut self, mut grant: Grant) -> Option<(Grant, LocalTurn)> {
        let queue = match &self.queue {
            Some(queue) if self.passes < queue.passes_in_a_row => queue.clone(),
            _ => return Some((grant, self)),
        };
        self.passes += 1;
        grant.token = grant.token.next_turn();
        loop {
            let next = {
                let mut state = lock(&queue.state);
                // If the turn was revoked, another task has the turn already.
                let is_current = state.turn == self.number;
                is_current.then(|| state.waiters.pop_front()).flatten()
            };
            let Some(next) = next else {
                return Some((grant, self));
            };
            let on = Admission {
                turn: self,
                grant: Some(grant),
            };
            // A task that has given up sends its admission back.
            let back = next.send(on).err()?;
            (self, grant) = (back.turn, back.grant?);
        }
    }
}

impl Drop for LocalTurn {
    fn drop(&mut self) {
        let Some(queue) = self.queue.take() else {
            return;
        };
        let state = lock(&queue.state);
        if state.turn == self.number {
            queue.pass_on(state);
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/local_queue.rs"]
mod tests;
