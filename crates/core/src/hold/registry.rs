//! A registry: the values of a session. A value is removed when its entry is dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::server::error::SessionEnd;
use crate::sync::{Mutex, MutexGuard, lock};

/// Registered values, by the numbers of their entries.
pub(crate) struct Registry<T>(Arc<Mutex<Registered<T>>>);

pub(crate) struct Registered<T> {
    pub(crate) values: BTreeMap<u64, T>,
    last: u64,
    /// The end of the session, once the values stay when their entries are dropped.
    pub(crate) frozen_by: Option<SessionEnd>,
}

/// The entry of a value. If it is dropped, the value is removed.
pub(crate) struct Entry<T> {
    pub(crate) registry: Registry<T>,
    number: u64,
}

impl<T> Default for Registry<T> {
    fn default() -> Registry<T> {
        Registry(Arc::new(Mutex::new(Registered {
            values: BTreeMap::new(),
            last: 0,
            frozen_by: None,
        })))
    }
}

impl<T> Registry<T> {
    pub(crate) fn add(&self, value: T) -> Entry<T> {
        let mut registered = self.lock();
        registered.last += 1;
        let number = registered.last;
        registered.values.insert(number, value);
        let registry = Registry(self.0.clone());
        Entry { registry, number }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Registered<T>> {
        lock(&self.0)
    }
}

impl<T> Drop for Entry<T> {
    fn drop(&mut self) {
        let mut registered = self.registry.lock();
        if registered.frozen_by.is_none() {
            registered.values.remove(&self.number);
        }
    }
}
