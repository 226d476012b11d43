//! The one runtime of a schedule.

use std::future::Future;

use shuttle_tokio::task::JoinHandle;

/// The runtime of the schedule. Each thread of the schedule is in it.
#[derive(Clone, Debug)]
pub struct Handle(shuttle_tokio::runtime::Handle);

/// Why a thread is in no runtime. No thread of a schedule has such a reason.
#[derive(Debug)]
pub enum TryCurrentError {}

impl TryCurrentError {
    /// True if the thread ends.
    pub fn is_thread_local_destroyed(&self) -> bool {
        match *self {}
    }
}

impl Handle {
    /// The runtime of the schedule.
    pub fn current() -> Handle {
        Handle(shuttle_tokio::runtime::Handle::current())
    }

    /// The runtime of the schedule.
    ///
    /// # Errors
    ///
    /// None.
    pub fn try_current() -> Result<Handle, TryCurrentError> {
        Ok(Handle::current())
    }

    /// Enters the runtime, in which the thread is already.
    pub fn enter(&self) -> impl Sized + use<> {}

    /// Runs the future as a task of its own.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.0.spawn(future)
    }
}
