//! The workers that run in this process.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zookeeper_recipes_core::{InvalidInput, NodePath, Session};

/// A worker: its ensemble, the path of the assignment, its id.
type Key = (usize, String, String);

static RUNNING: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());

/// A worker that runs, until it is dropped.
pub(crate) struct Running(Key);

impl Running {
    /// Fails if the worker runs already in the session.
    pub(crate) fn begin(
        session: &Session,
        path: &NodePath,
        worker: &str,
    ) -> Result<Running, InvalidInput> {
        // Each session has an ensemble of its own, which lives as long as the worker.
        let ensemble = Arc::as_ptr(session.ensemble()).cast::<()>() as usize;
        let key = (ensemble, path.to_string(), worker.to_owned());
        match all().insert(key.clone()) {
            true => Ok(Running(key)),
            false => Err(InvalidInput::new(
                "worker",
                worker,
                "runs already in this session",
            )),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        all().remove(&self.0);
    }
}

fn all() -> MutexGuard<'static, BTreeSet<Key>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
