//! The directory: the znode under which the contenders queue.

use crate::error::Error;
use crate::live::live_session::LiveSession;
use crate::path::NodePath;
use crate::retry::Backoff;
use crate::server::ensemble::{Acl, CreateMode, Created, Pending, ServerSession};
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
    /// for twice that each further time. Once a server has created a container, it gets containers.
    #[default]
    Container,
    /// Persistent znodes, which the server does not delete.
    Persistent,
}

impl Directories {
    pub(crate) fn mode(self) -> CreateMode {
        match self {
            Directories::Container => CreateMode::Container,
            Directories::Persistent => CreateMode::Persistent,
        }
    }
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
    ///
    /// `sent` is the reply to a create of the directory, if one was sent before.
    pub(crate) async fn create(
        self,
        live: &LiveSession,
        server: &ServerSession,
        mut sent: Option<Pending<Created>>,
    ) -> Result<(), Error> {
        let mut mode = self.kind.mode();
        let mut pause_if_unknown = Backoff::default();
        // Each parent may be missing once, without a pause.
        let parents = self.path.as_str().matches('/').count();
        let mut pause_if_missing =
            Backoff::default().skip_first(u32::try_from(parents).unwrap_or(0));
        let mut missing = vec![self.path.clone()];
        while let Some(path) = missing.last() {
            let data = if path == self.path { self.data } else { &[] };
            let create = || server.create(path.as_str(), data, mode, self.acl);
            match sent.take().unwrap_or_else(create).await {
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
                Err(ServerError::OutcomeUnknown(_)) => pause_if_unknown.wait().await,
                Err(error) => return Err(Error::at_create(path.as_str(), server.id(), error)),
            }
        }
        Ok(())
    }
}
