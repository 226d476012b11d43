//! The sessions of a worker's locks.
//!
//! The transaction that ends a session lists its ephemeral znodes, and the servers can read a list up
//! to a length. So a worker that owns very many partitions has several sessions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use zookeeper_recipes_core::{NodePath, Session, SessionState};

use crate::assignment::Assignment;
use crate::events::report;

/// The bytes of a contender's name, and of its path in the list, beside the path of the lock.
const NAME: usize = 80;

/// The sessions that were opened for the locks of a worker, beside its own.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Vec<Session>>);

impl Sessions {
    /// A session that has room for this lock, and for as many others as are entered at once.
    ///
    /// Opens one if none has, and if the ensemble can open more than one.
    pub(crate) fn with_room_for(
        &self,
        assignment: &Assignment,
        lock: &NodePath,
        at_once: usize,
    ) -> Session {
        let first = &assignment.session;
        let bytes = (lock.as_str().len() + NAME) * (at_once + 1);
        let has_room = |session: &&Session| {
            let left = session.ephemeral_bytes_left();
            left.is_none_or(|left| left >= bytes)
        };
        let mut further = self.further();
        let mut all = std::iter::once(first).chain(&*further);
        if let Some(session) = all.find(has_room) {
            return session.clone();
        }
        match first.another() {
            Some(session) => {
                further.push(session.clone());
                let sessions = 1 + further.len();
                report!(assignment, info, "further session", sessions);
                session
            }
            None => first.clone(),
        }
    }

    /// Forgets the further sessions that have ended for good.
    pub(crate) fn forget_ended(&self) {
        let has_ended = |session: &Session| matches!(session.state(), SessionState::Ended(_));
        self.further().retain(|session| !has_ended(session));
    }

    /// Closes the further sessions.
    pub(crate) async fn close_further(&self) {
        let further = std::mem::take(&mut *self.further());
        for session in further {
            session.close().await;
        }
    }

    fn further(&self) -> MutexGuard<'_, Vec<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
