//! The deletion of a session's znodes, when a process leaves the session.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::{join, join_all};

use crate::backoff::Backoff;
use crate::events::session as events;
use crate::server::ensemble::ServerSession;
use crate::server::error::{Refusal, ServerError};
use crate::session::live::LiveSession;
use crate::session::own_znodes::OwnZnode;
use crate::session::writes::Writes;

/// Deletes these znodes of a session that stays open at the server, until none may be left.
///
/// If the future is dropped, those that may be left are still listed.
pub(crate) async fn leave(
    live: &LiveSession,
    server: &dyn ServerSession,
    left: &mut Vec<OwnZnode>,
) {
    let mut backoff = Backoff::up_to(Duration::from_secs(1));
    loop {
        *left = delete_all(live.own_znodes().writes(), server, left).await;
        if left.is_empty() {
            return;
        }
        backoff.wait().await;
    }
}

/// Reports znodes that may be left.
pub(crate) fn report(live: &LiveSession, left: &[OwnZnode]) {
    let paths: Vec<&str> = left.iter().map(|znode| &*znode.path).collect();
    if !paths.is_empty() {
        events::left(live.id(), &paths);
    }
}

/// Deletes the znodes of a session that is being left, and returns those that may be left.
///
/// Does not retry.
pub(crate) async fn delete_all(
    writes: &Writes,
    server: &dyn ServerSession,
    znodes: &[OwnZnode],
) -> Vec<OwnZnode> {
    let mut sought: BTreeMap<&str, Vec<&OwnZnode>> = BTreeMap::new();
    let mut known = Vec::new();
    for znode in znodes {
        match znode.path.rsplit_once('/') {
            Some((directory, name)) if name.ends_with('-') => {
                sought.entry(directory).or_default().push(znode);
            }
            _ => known.push(async move { (vec![znode], delete(writes, server, znode).await) }),
        }
    }
    let sought = sought.into_iter().map(|(directory, znodes)| async move {
        let deleted = delete_sought(server, directory, &znodes).await;
        (znodes, deleted)
    });
    let (known, sought) = join(join_all(known), join_all(sought)).await;
    let left = known
        .into_iter()
        .chain(sought)
        .filter_map(|(znodes, deleted)| {
            let error = deleted.err().filter(|error| !error.is(Refusal::NoNode))?;
            tracing::debug!(%error, "a znode was not deleted when its session was closed");
            Some(znodes)
        });
    left.flatten().cloned().collect()
}

/// Sends the deletions of znodes whose answers nobody will hear, and returns the others.
///
/// The others have to be looked for, or may belong to another client by now.
pub(crate) fn delete_unheard(server: &dyn ServerSession, znodes: Vec<OwnZnode>) -> Vec<OwnZnode> {
    let is_known = |znode: &OwnZnode| znode.identity.is_none() && !znode.path.ends_with('-');
    let (known, others): (Vec<_>, Vec<_>) = znodes.into_iter().partition(is_known);
    for znode in known {
        // The request is sent by the call.
        drop(server.delete(&znode.path));
    }
    others
}

async fn delete(
    writes: &Writes,
    server: &dyn ServerSession,
    znode: &OwnZnode,
) -> Result<(), ServerError> {
    let path = &*znode.path;
    if let Some(identity) = &znode.identity {
        writes.until_sent(path).await;
        return delete_shared(server, path, identity).await;
    }
    server.delete(path).await
}

/// Deletes the znodes of a directory whose paths begin with those of these znodes.
///
/// The directory is empty for the root.
async fn delete_sought(
    server: &dyn ServerSession,
    directory: &str,
    znodes: &[&OwnZnode],
) -> Result<(), ServerError> {
    let prefixes: BTreeSet<&str> = znodes.iter().map(|znode| &*znode.path).collect();
    let listed = if directory.is_empty() { "/" } else { directory };
    let names = server.list(listed).await?;
    let paths = names.iter().map(|name| format!("{directory}/{name}"));
    // No prefix begins with another one: all are as long as an identity.
    let own = paths.filter(|path| {
        let before = prefixes.range(..=path.as_str()).next_back();
        before.is_some_and(|prefix| path.starts_with(prefix))
    });
    let deletions = own.map(|path| async move { server.delete(&path).await });
    let deleted = join_all(deletions).await;
    let is_left = |error: &ServerError| !error.is(Refusal::NoNode);
    let error = deleted.into_iter().filter_map(Result::err).find(is_left);
    error.map_or(Ok(()), Err)
}

/// Deletes a znode of the session, unless the znode of another client stands in its place.
async fn delete_shared(
    server: &dyn ServerSession,
    path: &str,
    identity: &[u8],
) -> Result<(), ServerError> {
    // The server has then applied every earlier deletion, so the read does not show a znode that
    // has gone.
    server.prove().await?;
    let (data, _) = server.get(path).await?;
    match data.starts_with(identity) {
        true => server.delete(path).await,
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::session::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn unheard_deletions_are_of_znodes_that_nobody_else_can_own() {
        let (live, script) = Scripted::open(Duration::from_millis(1));
        let znode = |path: &str, identity: Option<Arc<[u8]>>| OwnZnode {
            path: path.into(),
            identity,
        };
        let known = znode("/lock/me-0000000001", None);
        let (doubtful, shared) = (
            znode("/lock/me-", None),
            znode("/one", Some(Arc::from(*b"me"))),
        );
        let all = vec![known, doubtful.clone(), shared.clone()];
        let left = delete_unheard(&*live.server().expect("it is open"), all);
        assert_eq!(left, [doubtful, shared]);
        assert_eq!(script.deletions(), ["/lock/me-0000000001"]);
    }
}
