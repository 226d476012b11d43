//! Work that a session runs in the background, in the runtime in which it was opened.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::FutureExt;
use tokio::runtime::Handle;

use crate::live::live_session::LiveSession;
use crate::sync::ready_now;

impl LiveSession {
    /// Runs work in a task, until the work is done or the session has ended.
    ///
    /// The method may be called on any thread, inside or outside a runtime. If the session has ended,
    /// it does nothing.
    pub(crate) fn in_background(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        if self.has_ended() {
            return;
        }
        let live = self.clone();
        let until_the_end = async move {
            tokio::select! {
                biased;
                () = work => {}
                _ = live.ended() => {}
            }
        };
        self.runtime
            .spawn(self.ensemble.task(until_the_end.boxed()));
    }

    /// As [`in_background`](Self::in_background), but the work is polled once before the return.
    ///
    /// So the server handles what the work sends then before all that the caller sends later. The
    /// caller must hold no lock that the work takes.
    pub(crate) fn begin_in_background(
        self: &Arc<Self>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut work = work.boxed();
        // A thread that ends can enter no runtime.
        let can_enter = !Handle::try_current().is_err_and(|gone| gone.is_thread_local_destroyed());
        if can_enter && !self.has_ended() {
            // Timers must be those of the session's runtime.
            let _inside = self.runtime.enter();
            if ready_now(&mut work).is_some() {
                return;
            }
        }
        self.in_background(work);
    }

    /// Polls work in the runtime of the session if it is polled outside of any runtime.
    pub(crate) async fn in_a_runtime<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> T {
        poll_fn(|context| {
            let _inside = Handle::try_current().is_err().then(|| self.runtime.enter());
            work.as_mut().poll(context)
        })
        .await
    }
}
