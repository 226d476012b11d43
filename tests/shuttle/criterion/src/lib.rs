//! The only trait of criterion that shuttle's tokio implements.

/// Runtimes that can run a bench.
pub mod async_executor {
    use std::future::Future;

    /// A runtime that can run a bench. No bench is run here.
    pub trait AsyncExecutor {
        /// Runs the future to its end.
        fn block_on<T>(&self, future: impl Future<Output = T>) -> T;
    }
}
