//! The tasks of a process, which pause as it does.

use std::pin::pin;
use std::task::{Context, Poll};

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
    std::future::poll_fn(|context| {
        match shared.with(|world| world.may_run(process, task.id, task.kind, context)) {
            true => future.as_mut().poll(context),
            false => Poll::Pending,
        }
    })
    .await
}
