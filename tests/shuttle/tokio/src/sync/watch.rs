//! A value, and its changes.

use std::ops::{Deref, DerefMut};

use shuttle_tokio::sync::watch;
pub use shuttle_tokio::sync::watch::{Ref, error};

/// Changes the value.
#[derive(Debug)]
pub struct Sender<T>(watch::Sender<T>);

/// Sees the value and its changes.
#[derive(Debug)]
pub struct Receiver<T>(watch::Receiver<T>);

/// A value, and one who sees it.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = watch::channel(value);
    (Sender(sender), Receiver(receiver))
}

impl<T> Sender<T> {
    /// A value that nobody sees yet.
    pub fn new(value: T) -> Sender<T> {
        channel(value).0
    }

    /// One more who sees the value.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver(self.0.subscribe())
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Sender<T> {
        Sender::new(T::default())
    }
}

impl<T> Deref for Sender<T> {
    type Target = watch::Sender<T>;

    fn deref(&self) -> &watch::Sender<T> {
        &self.0
    }
}

impl<T> Receiver<T> {
    /// Takes the present value for seen.
    pub fn mark_unchanged(&mut self) {
        drop(self.0.borrow_and_update());
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        Receiver(self.0.clone())
    }
}

impl<T> Deref for Receiver<T> {
    type Target = watch::Receiver<T>;

    fn deref(&self) -> &watch::Receiver<T> {
        &self.0
    }
}

impl<T> DerefMut for Receiver<T> {
    fn deref_mut(&mut self) -> &mut watch::Receiver<T> {
        &mut self.0
    }
}
