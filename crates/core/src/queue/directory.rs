//! The directory: the znode under which the contenders queue.

use crate::error::Error;
use crate::live::live_session::LiveSession;
use crate::path::NodePath;
use crate::queue::unknown_creates::UnknownCreates;
use crate::retry::Backoff;
use crate::server::ensemble::{Acl, CreateMode, Created, ServerSession};
use crate::server::error::{Refusal, ServerError};

/// The kind of znode that a missing directory and its missing parents are created as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Directories {
    /// Container znodes, which the server deletes some time after they are empty.
    ///
    /// By default a server deletes at most 10,000 in a minute: see
    /// [what can go wrong](crate::docs::failures#many-directories).
    ///
    /// A server older than 3.5.3 has no containers. It gets persistent znodes. So does a server
    /// that closed three connections in a row at the create of a container, for ten minutes, and
    /// for twice that each further time.
    #[default]
    Container,
    /// Persistent znodes, which the server does not delete.
    Persistent,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MissingDirectory<'a> {
    pub(crate) path: &'a NodePath,
    pub(crate) data: &'a [u8],
    pub(crate) kind: Directories,
    pub(crate) acl: &'a [Acl],
}

impl MissingDirectory<'_> {
    /// Creates the directory and its missing parents, unless they exist already.
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
        // Each parent may be missing once, without a pause.
        let parents = self.path.as_str().matches('/').count();
        let mut pause_if_missing =
            Backoff::default().without_first(u32::try_from(parents).unwrap_or(0));
        let mut missing = vec![self.path.clone()];
        while let Some(path) = missing.last() {
            if live.features.containers.is_avoided(live.now()) {
                mode = CreateMode::Persistent;
            }
            let sent = live.now();
            let created = self.create_one(live, server, path, mode).await;
            match created {
                Ok(_) => drop(missing.pop()),
                Err(error) if error.is(Refusal::NodeExists) => drop(missing.pop()),
                Err(error) if error.is(Refusal::NoNode) => match path.parent() {
                    Some(parent) => {
                        missing.push(parent);
                        pause_if_missing.wait().await;
                    }
                    None => return Err(live.missing_chroot()),
                },
                Err(error) if error.is(Refusal::Unimplemented) && mode == CreateMode::Container => {
                    mode = CreateMode::Persistent;
                }
                Err(ServerError::OutcomeUnknown(_)) => {
                    let after = live.now().saturating_sub(sent);
                    unknown.pause(live, path.as_str(), after).await?;
                }
                Err(error) => return Err(Error::at_create(path.as_str(), server.id(), error)),
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
        let sent = live.now();
        let created = server.create(path.as_str(), data, mode, self.acl).await;
        live.note_create(&created);
        let containers = &live.features.containers;
        match created {
            _ if !is_container => {}
            Ok(_) | Err(ServerError::Refused(_)) => containers.answered(),
            // Some servers also forget the session of a connection that they close.
            Err(ServerError::OutcomeUnknown(_) | ServerError::SessionOver(_)) => {
                containers.closed(sent, live.now());
            }
        }
        created
    }
}
