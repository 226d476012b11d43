//! The proof that a connection serves this session and no other.
//!
//! Some servers answer a reconnect with a new session. ClickHouse Keeper does so at every
//! reconnect. The client library adopts the new session without an error. The znodes of the old
//! session stand until its timeout, so a read of such a znode proves nothing. A create of an
//! ephemeral znode proves the session: the reply names the session that owns the znode.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::server::acl::open_acl;
use crate::server::ensemble::{CreateMode, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::LiveSession;

/// The end of the name of the proof's znode.
///
/// No recipe of this workspace counts the znode as a contender. If another library counts every
/// child as a contender, the znode is the last in that library's queue.
const SUFFIX: &str = "session-lock-2147483647";

/// Creates and deletes an ephemeral znode, and checks which session owned it.
///
/// The root is tried first: no recipe uses it. Then each directory with a znode of the session is
/// tried. If all directories refuse the znode, the result is `Ok`, but the session is not proven,
/// and the lease is not renewed.
///
/// | | requests | round trips | watches |
/// |---|---|---|---|
/// | the proof | 2 | 1 | 0 |
/// | each directory that refuses the znode | 2 more | 1 more | 0 |
///
/// # Errors
///
/// [`ServerError::SessionOver`] if the connection serves another session. The error of the create
/// if no answer came.
pub(crate) async fn prove(
    live: Arc<LiveSession>,
    server: Arc<dyn ServerSession>,
) -> Result<(), ServerError> {
    let znodes = live.own_znodes().all();
    let own: BTreeSet<&str> = znodes.iter().map(|own| directory_of(&own.path)).collect();
    let own = own.into_iter().filter(|directory| !directory.is_empty());
    for directory in std::iter::once("").chain(own) {
        let path = path_in(&live, directory);
        let sent = live.sends();
        let create = server.create(&path, b"", CreateMode::Ephemeral, &open_acl());
        let delete = server.delete(&path);
        let (created, deleted) = (create.await, delete.await);
        if !matches!(created, Err(ServerError::Refused(_))) && deleted.is_err() {
            delete_later(&live, &path);
        }
        live.heard_of_create(&created);
        match created {
            Ok(created) => return live.created(sent, created.stat.ephemeral_owner),
            Err(ServerError::Refused(refusal)) => {
                tracing::debug!(directory, %refusal, "the directory refuses the proof");
            }
            Err(error) => return Err(error),
        }
    }
    tracing::warn!(session = %live.id(), "every directory refuses the proof of the session");
    Ok(())
}

/// Deletes the proof's znode in the background, and retries until the server has answered.
fn delete_later(live: &Arc<LiveSession>, path: &str) {
    let path: Arc<str> = path.into();
    let listed = live.own_znodes().list(path.clone(), None);
    let own_live = live.clone();
    live.in_background(async move {
        let _listed = listed;
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        while let Ok(server) = own_live.server() {
            match server.delete(&path).await {
                Err(ServerError::OutcomeUnknown(_) | ServerError::Refused(Refusal::Throttled)) => {}
                Err(error) if !error.is(Refusal::NoNode) => {
                    tracing::debug!(%path, %error, "the znode of the proof was not deleted");
                    return;
                }
                _ => return,
            }
            drop(server);
            backoff.wait().await;
        }
    });
}

/// A new path for a proof's znode in the directory.
pub(crate) fn path_in(live: &LiveSession, directory: &str) -> String {
    format!("{directory}/{}", live.identity().name(SUFFIX))
}

/// The directory of a path. Empty for a child of the root.
pub(crate) fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
