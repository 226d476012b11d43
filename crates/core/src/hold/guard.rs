//! The guard: an ephemeral znode that stands as long as its session.
//!
//! A client that has no connection sends its requests once it has one. The server may have put the
//! client into a new session by then, as ClickHouse Keeper does. A deletion requested in the old
//! session could then delete the next holder's znode, which has the same name. So each deletion by
//! a shared name goes into one transaction with a check that the guard stands. The guard is deleted
//! with its session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::server::acl::open_acl;
use crate::server::ensemble::{CreateMode, Operation, ServerSession, TransactionError};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::{Attachment, LiveSession};
use crate::session::proof;
use crate::sync::lock;

/// The guards of one session.
///
/// There is one guard at the root. If the session may not create a znode at the root, there is one
/// guard for each directory.
#[derive(Debug, Default)]
pub(crate) struct Guards(Mutex<BTreeMap<String, Guard>>);

/// A guard's path and its state.
///
/// The path is chosen once, so a create that was dropped half-way leaves no second znode.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    path: Arc<str>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Wanted,
    Stands,
    /// The session may not create the guard in this place.
    Refused,
}

/// The outcome of a deletion under guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    Done,
    /// The guard does not stand: the session is over, or somebody has deleted the guard.
    Unguarded,
}

impl Attachment for Guards {
    fn attach(_live: &LiveSession) -> Guards {
        Guards::default()
    }
}

impl Guards {
    /// The guard of the znode at `path`. Sends a create until the guard stands.
    ///
    /// # Errors
    ///
    /// The errors of the create. [`ServerError::SessionOver`] if the connection serves another
    /// session.
    pub(crate) async fn of(
        &self,
        live: &LiveSession,
        server: &dyn ServerSession,
        path: &str,
    ) -> Result<Guard, ServerError> {
        let directory = proof::directory_of(path);
        let root = self.in_directory(live, "");
        let guard = match root.state {
            State::Refused => self.in_directory(live, directory),
            State::Wanted | State::Stands => root,
        };
        if guard.state == State::Stands {
            return Ok(guard);
        }
        let place = proof::directory_of(&guard.path);
        match guard.create(live, server).await {
            Ok(()) => Ok(self.note(place, &guard, State::Stands)),
            Err(ServerError::Refused(refusal)) if place.is_empty() && !directory.is_empty() => {
                tracing::debug!(%refusal, "the server refuses a guard at the root");
                self.note(place, &guard, State::Refused);
                let guard = self.in_directory(live, directory);
                guard.create(live, server).await?;
                Ok(self.note(directory, &guard, State::Stands))
            }
            Err(error) => Err(error),
        }
    }

    fn in_directory(&self, live: &LiveSession, directory: &str) -> Guard {
        let wanted = || Guard {
            path: proof::path_in(live, directory).into(),
            state: State::Wanted,
        };
        let mut guards = lock(&self.0);
        let guard = guards.entry(directory.to_owned());
        guard.or_insert_with(wanted).clone()
    }

    fn note(&self, directory: &str, guard: &Guard, state: State) -> Guard {
        let path = guard.path.clone();
        let noted = Guard { path, state };
        lock(&self.0).insert(directory.to_owned(), noted.clone());
        noted
    }
}

impl Guard {
    async fn create(
        &self,
        live: &LiveSession,
        server: &dyn ServerSession,
    ) -> Result<(), ServerError> {
        let sent = live.sends();
        let create = server.create(&self.path, b"", CreateMode::Ephemeral, &open_acl());
        let created = create.await;
        live.heard_of_create(&created);
        match created {
            Ok(created) => live.created(sent, created.stat.ephemeral_owner),
            // Another attempt created it, or a create that was dropped before its answer.
            Err(error) if error.is(Refusal::NodeExists) => {
                let (_, stat) = server.get(&self.path).await?;
                live.is_owner(stat.ephemeral_owner)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn path(&self) -> Arc<str> {
        self.path.clone()
    }

    /// The check that the guard stands.
    pub(crate) fn check(&self) -> Operation {
        Operation::Check {
            path: self.path.to_string(),
            version: None,
        }
    }

    /// Deletes the znode if the guard stands. One request.
    pub(crate) async fn delete(
        &self,
        server: &dyn ServerSession,
        path: &str,
    ) -> Result<Deletion, ServerError> {
        let delete = Operation::Delete {
            path: path.to_owned(),
            version: None,
        };
        match server.transact(&[delete, self.check()]).await {
            Ok(_) => Ok(Deletion::Done),
            Err(TransactionError {
                operation: Some(1),
                error,
            }) if error.is(Refusal::NoNode) => Ok(Deletion::Unguarded),
            Err(refused) => Err(refused.error),
        }
    }
}
