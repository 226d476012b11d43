//! Ephemeral znodes that stand as long as their session.
//!
//! A client sends what was asked for while it had no connection once it has one. If the server has
//! put it into a new session by then, as ClickHouse Keeper does, a deletion asked for in the old
//! session could delete the next holder's znode of the same name. So it goes together with a check
//! that the guard stands: the guard goes with the session, as the znode does.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::ensemble::{CreateMode, Operation, ServerSession, TransactionError};
use crate::error::{Refusal, ServerError};
use crate::live::LiveSession;
use crate::proof;
use crate::transaction::open_acl;

/// The guards of one session: one at the root, where it is in nobody's way, or if the session may
/// not create one there, one for each directory.
#[derive(Debug, Default)]
pub(crate) struct Guards(Mutex<BTreeMap<String, Guard>>);

/// The path of a guard.
#[derive(Clone, Debug)]
pub(crate) struct Guard(Arc<str>);

/// What a deletion under guard came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    Done,
    /// The guard does not stand: the session is over, or somebody has deleted the guard.
    Unguarded,
}

impl Guards {
    /// The guard of the znode at `path`. One create, the first time; none later.
    ///
    /// # Errors
    ///
    /// Those of the create. [`ServerError::SessionOver`] if the connection serves another session.
    pub(crate) async fn of(
        &self,
        live: &LiveSession,
        server: &dyn ServerSession,
        path: &str,
    ) -> Result<Guard, ServerError> {
        let directory = proof::directory_of(path);
        let mut guards = self.0.lock().await;
        if let Some(guard) = guards.get("").or_else(|| guards.get(directory)) {
            return Ok(guard.clone());
        }
        let (place, guard) = match Guard::create(live, server, "").await {
            Err(ServerError::Refused(refusal)) if !directory.is_empty() => {
                tracing::debug!(%refusal, "no guard at the root");
                (directory, Guard::create(live, server, directory).await?)
            }
            created => ("", created?),
        };
        guards.insert(place.to_owned(), guard.clone());
        Ok(guard)
    }
}

impl Guard {
    async fn create(
        live: &LiveSession,
        server: &dyn ServerSession,
        directory: &str,
    ) -> Result<Guard, ServerError> {
        let path = proof::path_in(live, directory);
        let sent = live.now();
        let create = server.create(&path, b"", CreateMode::Ephemeral, &open_acl());
        live.created(sent, create.await?.stat.ephemeral_owner)?;
        Ok(Guard(path.into()))
    }

    /// Demands that the guard stands.
    pub(crate) fn check(&self) -> Operation {
        Operation::Check {
            path: self.0.to_string(),
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
