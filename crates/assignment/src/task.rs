//! Tasks that end at the latest with the value that waits for them.

use std::panic::resume_unwind;

use futures_util::future::{AbortHandle, FutureExt, abortable};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use zookeeper_recipes_core::ensemble::Ensemble;

/// A task. If it is dropped, the work is dropped at its next `.await`.
pub(crate) struct Task<T> {
    handle: JoinHandle<()>,
    /// Unlike that of the runtime, it takes effect when the task is polled next.
    abort: AbortHandle,
    output: oneshot::Receiver<T>,
}

impl<T: Send + 'static> Task<T> {
    pub(crate) fn spawn(
        runtime: &Handle,
        ensemble: &dyn Ensemble,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let (sender, output) = oneshot::channel();
        let (work, abort) = abortable(work);
        let work = async move {
            if let Ok(output) = work.await {
                // An error means that nobody waits for the output.
                let _ = sender.send(output);
            }
        };
        Task {
            handle: runtime.spawn(ensemble.task(work.boxed())),
            abort,
            output,
        }
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
        if let Ok(output) = (&mut self.output).await {
            return Some(output);
        }
        match (&mut self.handle).await {
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            _ => None,
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.abort.abort();
    }
}
