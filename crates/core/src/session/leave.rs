//! The deletion of a session's znodes, when a process leaves the session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, join_all};

use crate::events::session as events;
use crate::hold::own_znode::{OfRecipe, OwnZnodes};
use crate::live::live_session::LiveSession;
use crate::retry::Backoff;
use crate::server::ensemble::ServerSession;
use crate::server::error::{ServerError, if_there};

/// Znodes of a session that is being left.
#[derive(Clone, Default)]
pub(crate) struct Leftovers {
    /// If a path ends with `-`, the server has appended a number.
    pub(crate) paths: Vec<Arc<str>>,
    /// The znodes that recipes delete in their own way.
    pub(crate) of_recipes: Vec<Arc<OfRecipe>>,
}

impl Leftovers {
    /// All znodes that the session may own.
    pub(crate) fn of(znodes: &OwnZnodes) -> Leftovers {
        Leftovers {
            paths: znodes.paths(),
            of_recipes: znodes.of_recipes(),
        }
    }

    /// Deletes these znodes of a session that stays open at the server, until none may be left.
    ///
    /// If the future is dropped, those that may be left are still listed.
    pub(crate) async fn delete_all(&mut self, server: &Arc<dyn ServerSession>) {
        let mut backoff = Backoff::default();
        loop {
            self.delete(server).await;
            if self.paths.is_empty() && self.of_recipes.is_empty() {
                return;
            }
            backoff.wait().await;
        }
    }

    /// Deletes these znodes, and keeps those that may be left. Does not retry.
    pub(crate) async fn delete(&mut self, server: &Arc<dyn ServerSession>) {
        let mut sought: BTreeMap<&str, Vec<&Arc<str>>> = BTreeMap::new();
        let mut deletions: Vec<BoxFuture<'_, Leftovers>> = Vec::new();
        for path in &self.paths {
            match path.rsplit_once('/') {
                Some((directory, name)) if name.ends_with('-') => {
                    sought.entry(directory).or_default().push(path);
                }
                _ => deletions.push(
                    async move { if_failed(server.delete(path).await, &[path], None) }.boxed(),
                ),
            }
        }
        for (directory, prefixes) in sought {
            let deleted = async move {
                let deleted = delete_sought(&**server, directory, &prefixes).await;
                if_failed(deleted, &prefixes, None)
            };
            deletions.push(deleted.boxed());
        }
        for of_recipe in &self.of_recipes {
            let removed = async move {
                // Somebody may have deleted the znode, and the next holder's may have its name.
                let removed = of_recipe.remove(server, false).await;
                if_failed(removed, &[], Some(of_recipe))
            };
            deletions.push(removed.boxed());
        }
        let mut all = Leftovers::default();
        for left in join_all(deletions).await {
            all.paths.extend(left.paths);
            all.of_recipes.extend(left.of_recipes);
        }
        *self = all;
    }

    /// Sends the deletions of znodes without waiting for the answers, and keeps the others.
    ///
    /// The others have to be looked for, or may belong to another client by now.
    pub(crate) fn send_deletions(&mut self, server: &dyn ServerSession) {
        self.paths.retain(|path| {
            let is_sought = path.ends_with('-');
            if !is_sought {
                // The request is sent by the call.
                drop(server.delete(path));
            }
            is_sought
        });
    }

    /// Reports these znodes, which may be left.
    pub(crate) fn report(&self, live: &LiveSession) {
        let of_recipes = self.of_recipes.iter().map(|of_recipe| of_recipe.path());
        let paths: Vec<&str> = self
            .paths
            .iter()
            .map(|path| &**path)
            .chain(of_recipes)
            .collect();
        if !paths.is_empty() {
            events::left(live.id(), &paths);
        }
    }
}

/// These znodes, if their deletion has failed.
fn if_failed(
    deleted: Result<(), ServerError>,
    paths: &[&Arc<str>],
    of_recipe: Option<&Arc<OfRecipe>>,
) -> Leftovers {
    match if_there(deleted) {
        Ok(_) => Leftovers::default(),
        Err(error) => {
            tracing::debug!(%error, "a znode was not deleted when its session was closed");
            Leftovers {
                paths: paths.iter().map(|path| (*path).clone()).collect(),
                of_recipes: of_recipe.cloned().into_iter().collect(),
            }
        }
    }
}

/// Deletes the znodes of a directory whose paths begin with these prefixes.
///
/// The directory is empty for the root.
async fn delete_sought(
    server: &dyn ServerSession,
    directory: &str,
    prefixes: &[&Arc<str>],
) -> Result<(), ServerError> {
    let prefixes: BTreeSet<&str> = prefixes.iter().map(|prefix| &***prefix).collect();
    let listed = if directory.is_empty() { "/" } else { directory };
    let names = server.list(listed).await?;
    let paths = names.iter().map(|name| format!("{directory}/{name}"));
    // No prefix begins with another one: all are as long as an identity.
    let own = paths.filter(|path| {
        let before = prefixes.range(..=path.as_str()).next_back();
        before.is_some_and(|prefix| path.starts_with(prefix))
    });
    let deletions = own.map(|path| async move { if_there(server.delete(&path).await) });
    let deleted: Result<Vec<_>, _> = join_all(deletions).await.into_iter().collect();
    deleted.map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::live::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn unheard_deletions_are_of_znodes_that_nobody_else_can_own() {
        let (live, script) = Scripted::open(Duration::from_millis(1));
        let mut left = Leftovers {
            paths: vec!["/lock/me-0000000001".into(), "/lock/me-".into()],
            of_recipes: Vec::new(),
        };
        left.send_deletions(&*live.server().expect("it is open"));
        assert_eq!(left.paths, ["/lock/me-".into()]);
        assert_eq!(script.deletions(), ["/lock/me-0000000001"]);
    }
}
