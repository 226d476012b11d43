//! A candidate: its queue, its id, and its updates of the directory's data.

use std::sync::Arc;

use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{
    Backoff, Error, HoldView, InvalidInput, NodePath, Operation, Queue, Refusal, ServerError,
    Session,
};

use crate::directory_data::DirectoryData;

/// The parts that an election, a leadership and a term share.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) queue: Queue,
    pub(crate) id: Arc<str>,
}

impl Candidate {
    pub(crate) fn session(&self) -> &Session {
        self.queue.session()
    }

    /// The directory of the election.
    pub(crate) fn path(&self) -> &NodePath {
        self.queue.path()
    }

    /// Changes the directory's data, unless it has the new value already.
    ///
    /// If `leader` is given, the server refuses the change once the leader's znode is deleted. The
    /// change is repeated if another process changes the data meanwhile, or no answer comes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if the data belongs to another program; the errors of the requests.
    pub(crate) async fn update_directory(
        &self,
        leader: Option<&HoldView>,
        change: impl Fn(&mut DirectoryData),
    ) -> Result<(), Error> {
        let mut backoff = Backoff::default();
        loop {
            let server = self.session().server(self.path()).await?;
            let updated = self.update_once(&server, leader, &change).await;
            drop(server);
            match updated {
                Err(Error::OutcomeUnknown { .. })
                | Err(Error::Refused {
                    refusal: Refusal::BadVersion,
                    ..
                }) => backoff.wait().await,
                outcome => return outcome,
            }
        }
    }

    /// Sets the proclamation of the leader of this view.
    pub(crate) async fn proclaim(&self, text: &str, leader: &HoldView) -> Result<(), Error> {
        let proclaim = |data: &mut DirectoryData| {
            data.proclaimed = Some((leader.fencing_token(), text.to_owned()));
        };
        self.update_directory(Some(leader), proclaim).await
    }

    async fn update_once(
        &self,
        server: &ServerSession,
        leader: Option<&HoldView>,
        change: &impl Fn(&mut DirectoryData),
    ) -> Result<(), Error> {
        let path = self.path().as_str();
        let failed = |error: ServerError| Error::at(path, server.id, error);
        let (bytes, stat) = server.get(path).await.map_err(failed)?;
        let old = DirectoryData::parse(&bytes).ok_or_else(|| {
            let problem = "has data of another program, which is not overwritten";
            InvalidInput::new("the election at", path, problem)
        })?;
        let mut new = old.clone();
        change(&mut new);
        let write = match (new == old, leader) {
            (true, None) => return Ok(()),
            // The server still has to confirm that the leader's znode exists.
            (true, Some(_)) => Operation::check(path),
            (false, _) => Operation::set_data(path, new.to_bytes()),
        };
        let write = write.at_version(stat.version);
        match leader {
            Some(leader) => leader.transaction().operation(write).commit().await?,
            None => {
                let write = [write];
                let refused = |failure| Error::at_transaction(path, server.id, failure, &write);
                server.transact(&write).await.map_err(refused)?
            }
        };
        Ok(())
    }
}
