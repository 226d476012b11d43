//! The directory: the znode under which the contenders queue.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::error::Error;
use crate::path::NodePath;
use crate::server::ensemble::{Acl, CreateMode, Created, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::session::breaks::Asked;
use crate::session::live::LiveSession;

/// Which kind of znode a missing directory, and whatever is missing above it, is created as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Directories {
    /// Container znodes, which the server removes once they have become empty. Persistent where
    /// the server is older than 3.5.3 and knows none.
    #[default]
    Container,
    /// Persistent znodes, which stay.
    Persistent,
}

/// Everything there is to know to create a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissingDirectory<'a> {
    pub(crate) path: &'a NodePath,
    pub(crate) data: &'a [u8],
    pub(crate) kind: Directories,
    pub(crate) acl: &'a [Acl],
    pub(crate) chroot: &'a str,
}

impl MissingDirectory<'_> {
    /// Creates the directory and whatever is missing above it. That some of it is there already
    /// is success.
    pub(crate) async fn create(
        self,
        live: &LiveSession,
        server: &dyn ServerSession,
    ) -> Result<(), Error> {
        let mut mode = match self.kind {
            Directories::Container => CreateMode::Container,
            Directories::Persistent => CreateMode::Persistent,
        };
        let mut unknown = UnknownCreates::default();
        // Each of the parents may be missing once.
        let parents = self.path.as_str().matches('/').count();
        let mut missing_again =
            Backoff::after(u32::try_from(parents).unwrap_or(0), Duration::from_secs(1));
        let mut missing = vec![self.path.clone()];
        while let Some(path) = missing.last() {
            if live.unsupported().containers.are_too_many() {
                mode = CreateMode::Persistent;
            }
            let sent = live.now();
            let created = self.create_one(live, server, path, mode).await;
            match created {
                Ok(_) => {
                    missing.pop();
                }
                Err(error) if error.is(Refusal::NodeExists) => {
                    missing.pop();
                }
                Err(error) if error.is(Refusal::NoNode) => match path.parent() {
                    Some(parent) => {
                        missing.push(parent);
                        missing_again.wait().await;
                    }
                    None => {
                        return Err(Error::MissingChroot {
                            chroot: self.chroot.to_owned(),
                        });
                    }
                },
                Err(error) if error.is(Refusal::Unimplemented) && mode == CreateMode::Container => {
                    mode = CreateMode::Persistent;
                }
                Err(ServerError::OutcomeUnknown(_)) => {
                    unknown.another(live, path.as_str(), sent).await?;
                }
                Err(error) => return Err(Error::at(path.as_str(), server.id(), error)),
            }
        }
        Ok(())
    }

    /// Creates the directory or one of its parents.
    async fn create_one(
        self,
        live: &LiveSession,
        server: &dyn ServerSession,
        path: &NodePath,
        mode: CreateMode,
    ) -> Result<Created, ServerError> {
        let data = if path == self.path { self.data } else { &[] };
        let is_container = mode == CreateMode::Container;
        let asked = is_container.then(|| live.unsupported().containers.asked(server));
        let created = server.create(path.as_str(), data, mode, self.acl).await;
        live.heard_of_create(&created);
        match created {
            Ok(_) | Err(ServerError::Refused(_)) => {
                asked.into_iter().for_each(Asked::answered);
            }
            Err(ServerError::OutcomeUnknown(_)) => asked.into_iter().for_each(Asked::broke),
            Err(ServerError::SessionOver(_)) => {}
        }
        created
    }
}

/// Creates in a row to which no answer came.
#[derive(Debug)]
pub(crate) struct UnknownCreates {
    number: u32,
    /// How many of them broke their connection soon.
    soon: u32,
    backoff: Backoff,
}

impl Default for UnknownCreates {
    fn default() -> UnknownCreates {
        UnknownCreates {
            number: 0,
            soon: 0,
            backoff: Backoff::up_to(Duration::from_secs(1)),
        }
    }
}

impl UnknownCreates {
    /// True if every create until now was answered.
    pub(crate) fn is_none(&self) -> bool {
        self.number == 0
    }

    /// Waits before the next create. The last one was sent at `sent`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if eight creates broke their connections within a sixth of the session
    /// timeout, in a session in which none was ever answered: some servers close the connection at
    /// a request that they do not know.
    pub(crate) async fn another(
        &mut self,
        live: &LiveSession,
        path: &str,
        sent: Duration,
    ) -> Result<(), Error> {
        const MOST: u32 = 8;
        self.number += 1;
        if live.now().saturating_sub(sent) <= live.timeout() / 6 {
            self.soon += 1;
        }
        if self.soon >= MOST && !live.creates() {
            let problem = "the connection breaks at each create: it may not know create2, \
                           which ZooKeeper has since 3.5";
            let refusal = Refusal::Other(problem.to_owned());
            return Err(Error::at(path, live.id(), ServerError::Refused(refusal)));
        }
        self.backoff.wait().await;
        Ok(())
    }
}
