//! Tasks that end at the latest with the value that waits for them.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures_util::future::{AbortHandle, FutureExt, abortable};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use zookeeper_recipes_core::ensemble::Ensemble;

/// A task. If it is dropped, the work is dropped at its next `.await`.
pub(crate) struct Task<T> {
    /// Unlike that of the runtime, it takes effect when the task is polled next.
    abort: AbortHandle,
    /// What the work returned, or how it panicked.
    output: oneshot::Receiver<std::thread::Result<T>>,
}

impl<T: Send + 'static> Task<T> {
    pub(crate) fn spawn(
        runtime: &Handle,
        ensemble: &dyn Ensemble,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let (sender, output) = oneshot::channel();
        let (work, abort) = abortable(AssertUnwindSafe(work).catch_unwind());
        // An `async` block would have room for the work twice.
        let work = work.map(move |ended| {
            if let Ok(output) = ended {
                // An error means that nobody waits for the output.
                let _ = sender.send(output);
            }
        });
        runtime.spawn(ensemble.task(work.boxed()));
        Task { abort, output }
    }

    /// Has the work dropped at its next `.await`.
    pub(crate) fn stop(&self) {
        self.abort.abort();
    }

    /// Waits for the output. `None` if the work was dropped: the task was stopped, or its runtime has
    /// shut down.
    ///
    /// A panic of the work continues here. Once there was an output, the method must not be called
    /// again.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub(crate) async fn output(&mut self) -> Option<T> {
        match (&mut self.output).await {
            Ok(Ok(output)) => Some(output),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => None,
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.abort.abort();
    }
}
