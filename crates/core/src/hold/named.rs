//! A znode whose whole name the recipe chooses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::future::FutureExt;

use crate::hold::deletion::DeleteOutcome;
use crate::retry::retry;
use crate::server::ensemble::{ServerSession, SessionId, Stat};
use crate::server::error::{ServerError, if_there};
use crate::sync::{Mutex, SharedWork, lock};

/// A znode whose whole name the recipe chooses. Other clients create znodes of the same name.
pub(crate) struct Named {
    pub(crate) path: String,
    is_own: Box<IsOwn>,
    /// True while the znode is its holder's.
    is_held: AtomicBool,
    /// The transaction that created the holder's znode.
    czxid: OnceLock<i64>,
    /// The connection before the znode was last created or looked for.
    seen_over: Mutex<Option<u64>>,
    /// The one deletion that is under way: a second one could delete the next holder's znode.
    deleting: SharedWork<Result<DeleteOutcome, ServerError>>,
}

/// True if this data and this metadata are those of the recipe's own znode.
pub(crate) type IsOwn = dyn Fn(&[u8], &Stat) -> bool + Send + Sync;

impl Named {
    pub(crate) fn new(path: &str, is_own: Box<IsOwn>) -> Named {
        Named {
            path: path.to_owned(),
            is_own,
            is_held: AtomicBool::new(false),
            czxid: OnceLock::new(),
            seen_over: Mutex::default(),
            deleting: SharedWork::default(),
        }
    }

    /// Notes that the znode of this transaction is its holder's.
    pub(crate) fn begin_hold(&self, czxid: i64) {
        self.czxid.get_or_init(|| czxid);
        self.is_held.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end_hold(&self) {
        self.is_held.store(false, Ordering::Relaxed);
    }

    /// Notes the connection, before a request whose answer says whose znode is at the path.
    pub(crate) fn note_connection(&self, server: &ServerSession) {
        *lock(&self.seen_over) = server.connection();
    }

    /// The connection over which the znode was last seen, or an earlier one.
    pub(crate) fn seen_over(&self) -> Option<u64> {
        *lock(&self.seen_over)
    }

    /// True if the znode found at the path is the holder's.
    pub(crate) fn is_still(&self, stat: &Stat) -> bool {
        self.czxid.get().is_none_or(|czxid| *czxid == stat.czxid)
    }

    /// Reads the znode at the path. True if it is the recipe's own.
    ///
    /// Once a write is committed over this connection, the server has applied an earlier create or
    /// deletion over another connection, or will refuse it.
    pub(crate) async fn find(
        &self,
        server: &ServerSession,
    ) -> Result<Option<(Stat, bool)>, ServerError> {
        self.note_connection(server);
        server.commit_noop().await?;
        let found = if_there(server.get(&self.path).await)?;
        Ok(found.map(|(data, stat)| {
            let is_of_session = SessionId(stat.ephemeral_owner) == server.id;
            (stat, is_of_session && (self.is_own)(&data, &stat))
        }))
    }

    /// Deletes the znode until the server answers or the session ends.
    pub(crate) async fn delete_until_answered(
        self: &Arc<Self>,
        server: &Arc<ServerSession>,
    ) -> Result<DeleteOutcome, ServerError> {
        let delete = || {
            // Servers that have lost the znode may have that of another holder at the path.
            let is_held = self.is_held.swap(false, Ordering::Relaxed);
            self.delete(
                server,
                is_held && server.still_has_connection(self.seen_over()),
            )
        };
        retry(ServerError::may_pass, delete).await
    }

    /// Deletes the znode, or waits for the deletion that is under way. Nothing is repeated.
    ///
    /// `is_held` is true if no other client can have a znode at the path.
    pub(crate) async fn delete(
        self: &Arc<Self>,
        server: &Arc<ServerSession>,
        is_held: bool,
    ) -> Result<DeleteOutcome, ServerError> {
        let begin = || {
            let (own, server) = (self.clone(), server.clone());
            let delete = async move {
                let is_own = is_held || matches!(own.find(&server).await?, Some((_, true)));
                let mut found = DeleteOutcome::Deleted;
                if is_own && if_there(server.delete(&own.path).await)?.is_none() {
                    found = DeleteOutcome::WasGone;
                }
                Ok(found)
            };
            delete.boxed()
        };
        self.deleting.join(begin).await
    }
}
