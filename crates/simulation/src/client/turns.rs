//! The order in which tasks that were woken together run.

use std::collections::BTreeSet;
use std::task::Waker;

use fastrand::Rng;

/// A task, in the order in which they were begun.
pub(crate) type TaskId = u64;

/// The kinds of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A task of the process's own. It pauses while the process sleeps.
    Own,
    /// One of many tasks of the process's own, which run one at a time.
    InTurn,
    /// A background task of a session. It also pauses while the process is blocked.
    Background,
}

/// The background tasks of sessions run one at a time.
///
/// The runtime wakes the tasks that wait for one event in an order that no seed gives again. So a
/// task that is woken waits for its turn, and the seed decides whose turn it is. The turn is drawn
/// once all that were woken together wait for theirs.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    last: TaskId,
    /// True if a task has been woken since [`Turns::settles`] was last asked.
    is_unsettled: bool,
    /// The tasks that have been woken since the last draw.
    woken: Vec<(TaskId, Waker)>,
    /// The tasks that have been drawn, the last of them first.
    drawn: Vec<(TaskId, Waker)>,
    /// The tasks that have been woken or drawn.
    waiting: BTreeSet<TaskId>,
    /// The tasks whose turn it is.
    due: BTreeSet<TaskId>,
}

impl Turns {
    pub(crate) fn begin_task(&mut self) -> TaskId {
        self.last += 1;
        self.last
    }

    /// True if tasks have been woken since the last call: others may have been woken with them, and
    /// have to be let in before a turn is drawn.
    pub(crate) fn settles(&mut self) -> bool {
        std::mem::take(&mut self.is_unsettled)
    }

    /// The task whose turn it is, to be woken.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> Option<Waker> {
        if self.drawn.is_empty() {
            let mut woken = std::mem::take(&mut self.woken);
            woken.sort_unstable_by_key(|(task, _)| *task);
            rng.shuffle(&mut woken);
            self.drawn = woken;
        }
        let (task, waker) = self.drawn.pop()?;
        self.waiting.remove(&task);
        self.due.insert(task);
        Some(waker)
    }

    /// True if it is this task's turn; otherwise the task is woken when it is.
    pub(crate) fn comes(&mut self, task: TaskId, waker: &Waker) -> bool {
        if self.due.remove(&task) {
            return true;
        }
        if self.waiting.insert(task) {
            self.woken.push((task, waker.clone()));
            self.is_unsettled = true;
        }
        false
    }

    /// The task has ended, or was dropped.
    pub(crate) fn end_task(&mut self, task: TaskId) {
        self.due.remove(&task);
    }
}
