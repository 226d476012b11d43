//! The tasks of a process, which pause as it does.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::shared::Shared;
use crate::client::process::ProcessId;
use crate::client::turns::{Kind, TaskId};
use crate::client::world::World;

impl World {
    /// True if a task may run now. Otherwise it is woken once it may.
    fn may_run(
        &mut self,
        process: ProcessId,
        task: TaskId,
        kind: Kind,
        context: &Context<'_>,
    ) -> bool {
        let process = &mut self.processes[process];
        let (stands_still, takes_turns) = match kind {
            Kind::Own => (process.is_asleep(), false),
            Kind::InTurn => (process.is_asleep(), true),
            Kind::Background => (process.is_still(), true),
        };
        if stands_still {
            process.wakers.insert(task, context.waker().clone());
            return false;
        }
        !takes_turns || self.turns.comes(task, context.waker())
    }
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
            self.shared.with(|world| world.turns.end_task(id));
        }
    }
}

thread_local! {
    /// How long the task that is polled now blocks once the poll is over.
    static BLOCKS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Blocks the task that calls it, as work does that blocks its thread, while other tasks of the
/// process run on other threads.
///
/// The task is not polled for this time, once the present poll is over. So nothing cancels it either,
/// unless the runtime drops the task. For background tasks of a session, such as the work on a
/// partition, and for tasks of a [`SimulatedProcess`](crate::SimulatedProcess). In others the call
/// does nothing that is defined.
pub fn block_this_task(duration: Duration) {
    BLOCKS.set(duration);
}

/// Runs a future as a task of a process.
pub(crate) async fn run<F: Future>(
    shared: &Shared,
    process: ProcessId,
    kind: Kind,
    future: F,
) -> F::Output {
    let id = shared.with(|world| world.turns.begin_task());
    let task = Task { shared, id, kind };
    let mut future = pin!(future);
    let mut blocked: Option<Pin<Box<Sleep>>> = None;
    std::future::poll_fn(|context| {
        if let Some(end) = &mut blocked {
            ready!(end.as_mut().poll(context));
            blocked = None;
        }
        if !shared.with(|world| world.may_run(process, task.id, task.kind, context)) {
            return Poll::Pending;
        }
        let polled = future.as_mut().poll(context);
        let blocks = BLOCKS.take();
        if polled.is_pending() && !blocks.is_zero() {
            blocked = Some(Box::pin(sleep(blocks)));
            // To be polled again at its end.
            context.waker().wake_by_ref();
        }
        polled
    })
    .await
}
