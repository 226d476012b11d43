//! The proof that a connection serves this very session.
//!
//! Some servers answer a reconnect with a new session, and the client takes it over in silence:
//! ClickHouse Keeper does so at every reconnect. The znodes of the old session stand until its
//! timeout, so reading one proves nothing. Creating an ephemeral znode does: the reply names the
//! session that owns it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::server::acl::open_acl;
use crate::server::ensemble::{CreateMode, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::LiveSession;

/// What its name ends with. No recipe of ours counts it. Libraries that take every child for a
/// contender of a lock find the last in the queue.
const SUFFIX: &str = "session-lock-2147483647";

/// Creates an ephemeral znode, deletes it, and looks at its owner.
///
/// At the root, where it is in nobody's way, or else beside one of the session's own znodes. Costs
/// two requests, sent together; two more for each directory that refuses the znode. If none takes
/// it, the lease runs out.
///
/// # Errors
///
/// [`ServerError::SessionOver`] if the connection serves another session.
pub(crate) async fn prove(
    live: Arc<LiveSession>,
    server: Arc<dyn ServerSession>,
) -> Result<(), ServerError> {
    let znodes = live.own_znodes().all();
    let own: BTreeSet<&str> = znodes.iter().map(|own| directory_of(&own.path)).collect();
    let own = own.into_iter().filter(|directory| !directory.is_empty());
    for directory in std::iter::once("").chain(own) {
        let path = path_in(&live, directory);
        let sent = live.now();
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
                tracing::debug!(directory, %refusal, "no proof of the session here");
            }
            Err(error) => return Err(error),
        }
    }
    tracing::warn!(session = %live.id(), "no directory takes the proof of the session");
    Ok(())
}

/// Deletes the proof in the background, until the server has answered.
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
                    tracing::debug!(%path, %error, "the proof was not deleted");
                    return;
                }
                _ => return,
            }
            drop(server);
            backoff.wait().await;
        }
    });
}

/// A new path for a znode of the session in the directory.
pub(crate) fn path_in(live: &LiveSession, directory: &str) -> String {
    format!("{directory}/{}", live.identity().name(SUFFIX))
}

/// Empty for a child of the root.
pub(crate) fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
