//! The names under which this process joins: one join or membership at a time for each.
//!
//! A member's znode shows its name and its session. If a create has no answer, two joins of one
//! name in one session could not distinguish their znodes, and one could delete the other's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};
use zookeeper_recipes_core::ensemble::Ensemble;
use zookeeper_recipes_core::{NodePath, Session};

/// The names of all groups of a session. The clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<NodePath, Arc<Name>>>>);

/// The names by session, of which the clones have one ensemble.
///
/// If a program opens two sessions on one ensemble, they share the names, too.
static SESSIONS: Mutex<Vec<(Weak<dyn Ensemble>, Names)>> = Mutex::new(Vec::new());

/// A name. It is kept for as long as a znode of it may exist.
#[derive(Debug, Default)]
pub(crate) struct Name {
    turns: Arc<Turns<()>>,
    /// The transaction that created the last znode of this name. 0 before the first.
    ///
    /// That znode may exist until it is deleted in the background. Its session may be that of the
    /// next znode, so only this number distinguishes them.
    last: AtomicI64,
}

/// A turn at a name, until it [ends](Self::end) or its clones are dropped. The clones are one.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    name: Arc<Name>,
    guard: Arc<Mutex<Option<OwnedMutexGuard<()>>>>,
}

impl Names {
    /// The names that all groups of this session share.
    pub(crate) fn of(session: &Session) -> Names {
        let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(ensemble, _)| ensemble.strong_count() > 0);
        let ensemble = Arc::downgrade(session.ensemble());
        let known = sessions.iter().find(|(it, _)| it.ptr_eq(&ensemble));
        if let Some((_, names)) = known {
            return names.clone();
        }
        let names = Names::default();
        sessions.push((ensemble, names.clone()));
        names
    }

    fn name(&self, path: &NodePath) -> Arc<Name> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody else keeps a name if no znode of it may exist.
        names.retain(|_, name| Arc::strong_count(name) > 1);
        names.entry(path.clone()).or_default().clone()
    }

    /// Waits for the turn.
    pub(crate) async fn turn(&self, path: &NodePath) -> Turn {
        let name = self.name(path);
        let guard = name.turns.clone().lock_owned().await;
        Turn::new(name, guard)
    }

    /// The turn, unless another join or membership of this process has it.
    pub(crate) fn try_turn(&self, path: &NodePath) -> Option<Turn> {
        let name = self.name(path);
        let guard = name.turns.clone().try_lock_owned().ok()?;
        Some(Turn::new(name, guard))
    }
}

impl Turn {
    fn new(name: Arc<Name>, guard: OwnedMutexGuard<()>) -> Turn {
        let guard = Arc::new(Mutex::new(Some(guard)));
        Turn { name, guard }
    }

    pub(crate) fn name(&self) -> &Arc<Name> {
        &self.name
    }

    /// The transaction that created the last znode of this name.
    pub(crate) fn last(&self) -> i64 {
        self.name.last.load(Ordering::Relaxed)
    }

    /// Notes the transaction that created the znode of this turn.
    pub(crate) fn created(&self, czxid: i64) {
        self.name.last.store(czxid, Ordering::Relaxed);
    }

    /// Ends the turn: the transaction that created its znode is noted.
    pub(crate) fn end(&self) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        drop(guard.take());
    }
}
