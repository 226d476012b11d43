//! A value that is set once, and that tasks can wait for.

use std::fmt;
use std::sync::OnceLock;

use shuttle_tokio::sync::Notify;

/// A value that is set once.
pub struct SetOnce<T> {
    value: OnceLock<T>,
    is_set: Notify,
}

impl<T> SetOnce<T> {
    /// No value.
    pub fn new() -> SetOnce<T> {
        SetOnce {
            value: OnceLock::new(),
            is_set: Notify::new(),
        }
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// If there is a value, the new one comes back.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.notify_waiters();
        Ok(())
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Waits for the value.
    pub async fn wait(&self) -> &T {
        loop {
            let is_set = self.is_set.notified();
            if let Some(value) = self.get() {
                return value;
            }
            is_set.await;
        }
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> SetOnce<T> {
        SetOnce::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(formatter)
    }
}
