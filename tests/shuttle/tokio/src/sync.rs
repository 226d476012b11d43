//! Channels, permits and notifications, each use of which lets other threads run before.

pub mod watch;

mod set_once;

pub use set_once::SetOnce;
pub use shuttle_tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, futures, mpsc, oneshot};
