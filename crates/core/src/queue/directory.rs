//! The directory of a znode that is to be created: created too, if it is missing.

use crate::error::Error;
use crate::hold::open_session::OpenSession;
use crate::live::live_session::LiveSession;
use crate::path::NodePath;
use crate::queue::options::QueueOptions;
use crate::retry::Backoff;
use crate::rule::Rule;
use crate::server::ensemble::{CreateMode, Created, Pending, ServerSession};
use crate::server::error::{Refusal, ServerError};

/// The directory of a znode that is to be created, which may be missing.
pub(crate) struct MissingDirectory<'a> {
    path: &'a NodePath,
    /// The rule that chooses the directory's data. `None` if the directory has no data.
    rule: Option<&'a dyn Rule>,
    options: &'a QueueOptions,
    /// True if the directory's create is to be sent before that of the znode.
    may_be_missing: bool,
    /// The directory's create that was sent before that of the znode.
    sent: Option<Pending<Created>>,
    pause_if_missing: Backoff,
}

impl<'a> MissingDirectory<'a> {
    pub(crate) fn new(
        path: &'a NodePath,
        rule: Option<&'a dyn Rule>,
        options: &'a QueueOptions,
        may_be_missing: bool,
    ) -> MissingDirectory<'a> {
        MissingDirectory {
            path,
            rule,
            options,
            may_be_missing,
            sent: None,
            pause_if_missing: Backoff::default().skip_first(1),
        }
    }

    /// Sends the directory's create if the directory may be missing.
    ///
    /// The caller sends the znode's create after it. The server handles both in this order, and
    /// refuses the first one if the directory exists.
    pub(crate) fn send_create(&mut self, server: &ServerSession) {
        let send = || self.create(server, self.path, self.options.directories.mode());
        self.sent = self.may_be_missing.then(send);
    }

    /// Notes that the directory exists: the znode is created.
    pub(crate) async fn note_exists(&mut self, open: &OpenSession) {
        if let Some(sent) = self.sent.take() {
            let was_missing = sent.await.is_ok();
            open.znodes.handoff.note_directory(self.path, was_missing);
        }
    }

    /// Prepares the next create of the znode, whose reply says that the directory is missing.
    ///
    /// It is sent behind the directory's. If that was sent before this one, parents are missing,
    /// and the method creates them all.
    pub(crate) async fn note_missing(
        &mut self,
        open: &OpenSession,
        server: &ServerSession,
    ) -> Result<(), Error> {
        let sent = self.sent.take();
        self.may_be_missing = sent.is_none();
        if let Some(sent) = sent {
            self.create_with_parents(&open.live, server, sent).await?;
            open.znodes.handoff.note_directory(self.path, true);
            self.pause_if_missing.wait().await;
        }
        Ok(())
    }

    /// Creates the directory and its missing parents, after the reply to the directory's create.
    async fn create_with_parents(
        &mut self,
        live: &LiveSession,
        server: &ServerSession,
        sent: Pending<Created>,
    ) -> Result<(), Error> {
        let mut mode = self.options.directories.mode();
        let mut sent = Some(sent);
        let mut pause_if_unknown = Backoff::default();
        // Each parent may be missing once, without a pause.
        let parents = self.path.as_str().matches('/').count();
        let mut pause_if_missing =
            Backoff::default().skip_first(u32::try_from(parents).unwrap_or(0));
        let mut missing = vec![self.path.clone()];
        while let Some(path) = missing.last() {
            let create = || self.create(server, path, mode);
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
                Err(error) => return Err(Error::at_create(path.as_str(), server.id, error)),
            }
        }
        Ok(())
    }

    /// Sends the create of the directory, or of one of its parents, which have no data.
    fn create(
        &self,
        server: &ServerSession,
        path: &NodePath,
        mode: CreateMode,
    ) -> Pending<Created> {
        let rule = self.rule.filter(|_| path == self.path);
        let data = rule.map_or_else(Vec::new, Rule::directory_data);
        server.create(path.as_str(), &data, mode, &self.options.acl)
    }
}
