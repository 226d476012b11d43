//! The tasks of a process: which stand still as it does, and which of them goes on first.

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::world::{ProcessId, Shared, World};

/// A task, in the order in which they were begun.
pub(super) type TaskId = u64;

/// What sessions do in the background goes on one task at a time.
///
/// The runtime wakes the tasks that wait for one event in an order that no seed gives again. So a
/// task that is woken waits for its turn, and the seed says whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    last: TaskId,
    /// Those that have been woken since the last draw.
    woken: Vec<(TaskId, Waker)>,
    /// Those that have been drawn, the last of them first.
    drawn: Vec<(TaskId, Waker)>,
    /// Those that have been woken or drawn.
    waiting: BTreeSet<TaskId>,
    /// Those whose turn it is.
    due: BTreeSet<TaskId>,
}

impl World {
    fn begin_task(&mut self) -> TaskId {
        self.turns.last += 1;
        self.turns.last
    }

    /// Wakes the task whose turn it is. Whether there is one.
    pub(super) fn take_turn(&mut self) -> bool {
        if self.turns.drawn.is_empty() {
            let mut woken = std::mem::take(&mut self.turns.woken);
            woken.sort_unstable_by_key(|(task, _)| *task);
            self.rng.shuffle(&mut woken);
            self.turns.drawn = woken;
        }
        let Some((task, waker)) = self.turns.drawn.pop() else {
            return false;
        };
        self.turns.waiting.remove(&task);
        self.turns.due.insert(task);
        self.effect(move || waker.wake());
        true
    }

    /// Whether a task may go on; otherwise it is woken once it may.
    fn may_go_on(&mut self, process: ProcessId, task: &Task<'_>, context: &Context<'_>) -> bool {
        let process = &mut self.processes[process];
        let (stands_still, takes_turns) = match task.kind {
            Kind::Own => (process.is_asleep(), false),
            Kind::InTurn => (process.is_asleep(), true),
            Kind::Background => (process.is_still(), true),
        };
        if stands_still {
            process.wakers.insert(task.id, context.waker().clone());
            return false;
        }
        if !takes_turns {
            return true;
        }
        if self.turns.due.remove(&task.id) {
            return true;
        }
        if self.turns.waiting.insert(task.id) {
            self.turns.woken.push((task.id, context.waker().clone()));
        }
        false
    }
}

/// Whose task it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The process's own, which stands still while the process sleeps.
    Own,
    /// One of many of the process's own, that go on one at a time.
    InTurn,
    /// What a session does in the background, which stands still also while it is blocked.
    Background,
}

struct Task<'a> {
    shared: &'a Shared,
    id: TaskId,
    kind: Kind,
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if self.kind != Kind::Own {
            let id = self.id;
            self.shared.with(|world| {
                world.turns.due.remove(&id);
            });
        }
    }
}

/// Runs a future as a task of a process.
pub(super) async fn run<F: Future>(
    shared: &Shared,
    process: ProcessId,
    kind: Kind,
    future: F,
) -> F::Output {
    let id = shared.with(World::begin_task);
    let task = Task { shared, id, kind };
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        match shared.with(|world| world.may_go_on(process, &task, context)) {
            true => future.as_mut().poll(context),
            false => Poll::Pending,
        }
    })
    .await
}
