//! The task of a worker that publishes what the worker owns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::stream::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::{Operation, TransactionError};
use zookeeper_recipes_core::{
    Acl, Backoff, Directories, Error, FencingToken, InvalidInput, NamedZnode, NodePath, Refusal,
    ServerError, Session, SessionEnd, SessionId, SessionState, Stat,
};

use crate::events::TARGET;
use crate::layout::is_persistent;
use crate::owned::{self, LONGEST_WORD, OWNED};
use crate::pieces::{self, Piece, arrange};

/// What changes within this time after a write is published by one more.
///
/// While a worker acquires thousands of partitions, it would otherwise do little else.
const REST: Duration = Duration::from_millis(50);

/// The hold of a partition that a worker owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) token: FencingToken,
    pub(crate) since: SystemTime,
}

/// What a worker owns now, for the task that publishes it.
pub(crate) type Owns = watch::Sender<Owned>;

/// Publishes what a worker owns, in ephemeral znodes.
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) session: Session,
    pub(crate) directory: NodePath,
    pub(crate) worker: String,
    pub(crate) address: String,
    pub(crate) acl: Vec<Acl>,
}

/// What a session has published.
#[derive(Default)]
struct Record {
    published: Vec<Published>,
    pieces: Vec<Owned>,
}

/// The holds of the partitions in one piece.
pub(crate) type Owned = BTreeMap<Arc<str>, Own>;

/// A piece at the server, until it is dropped.
struct Published {
    /// If it is dropped, the znode is deleted in the background.
    _znode: NamedZnode,
    session: SessionId,
    path: NodePath,
    /// `None` if the server may have other data.
    content: Option<Content>,
}

/// What a piece says.
#[derive(PartialEq, Eq)]
struct Content {
    /// The number of pieces.
    of: usize,
    owned: Owned,
}

impl Publisher {
    /// Keeps the znodes up to date. Returns if the session is closed, or there is a persistent znode
    /// at the name of one.
    pub(crate) async fn run(&self, mut owns: watch::Receiver<Owned>) -> Error {
        let mut backoff = Backoff::default();
        let mut record = Record::default();
        let mut states = self.session.states();
        // The first one is the state now.
        let _ = states.next().await;
        loop {
            let publish = self.publish(&mut owns, &mut states, &mut record, &mut backoff);
            let error = publish.await;
            tracing::debug!(
                target: TARGET,
                path = %self.directory, worker = self.worker, %error, "publishing again"
            );
            match error {
                Error::NoSession { .. } | Error::InvalidInput(_) => return error,
                Error::SessionOver { .. } => record = Record::default(),
                // In the same session, the deletion of a dropped piece would meet its next create.
                _ => {}
            }
            backoff.wait().await;
        }
    }

    /// Publishes until an error.
    async fn publish(
        &self,
        owns: &mut watch::Receiver<Owned>,
        states: &mut (impl Stream<Item = SessionState> + Unpin),
        record: &mut Record,
        backoff: &mut Backoff,
    ) -> Error {
        loop {
            let owned = owns.borrow_and_update().clone();
            record.pieces = arrange(&record.pieces, owned, |_| LONGEST_WORD);
            let of = record.pieces.len();
            let mut has_written = false;
            for (index, owned) in record.pieces.iter().enumerate() {
                let known = record.published.get(index);
                let known = known.and_then(|known| known.content.as_ref());
                let is_same =
                    |known: &Content| (index > 0 || known.of == of) && known.owned == *owned;
                if known.is_some_and(is_same) {
                    continue;
                }
                let owned = owned.clone();
                let content = Content { of, owned };
                let written = self.write(&mut record.published, index, content);
                if let Err(error) = written.await {
                    return error;
                }
                has_written = true;
            }
            *backoff = Backoff::default();
            if has_written {
                sleep(REST).await;
            }
            let Some(session) = record.published.first().map(|first| first.session) else {
                continue;
            };
            tokio::select! {
                biased;
                // The sender lives longer than this future.
                _ = owns.changed() => {}
                state = states.next() => {
                    let followed = self.follow(state, session, &mut record.published);
                    if let Err(error) = followed.await {
                        return error;
                    }
                }
            }
        }
    }

    /// Follows another state of the session. Compares the pieces if a server answers again.
    async fn follow(
        &self,
        state: Option<SessionState>,
        own: SessionId,
        published: &mut [Published],
    ) -> Result<(), Error> {
        match state {
            Some(SessionState::Connected(id)) if id == own => self.compare(published).await,
            Some(SessionState::Suspended(id)) if id == own => Ok(()),
            Some(SessionState::Ended(reason)) => {
                let path = self.directory.to_string();
                Err(Error::NoSession { path, reason })
            }
            _ => Err(session_over(&self.directory, own, SessionEnd::Expired)),
        }
    }

    /// Forgets each piece that is another one at the server: a backup was restored, or somebody has
    /// written there.
    async fn compare(&self, published: &mut [Published]) -> Result<(), Error> {
        let server = self.session.server(&self.directory).await?;
        let paths: Vec<String> = published.iter().map(|it| it.path.to_string()).collect();
        let found = server.get_each(&paths).await;
        let found = found.map_err(|error| Error::at(&paths[0], server.id(), error))?;
        for (known, found) in published.iter_mut().zip(found) {
            let data = found.map(|(data, _)| data);
            known.content = known
                .content
                .take()
                .filter(|it| data == Some(self.text(it)));
        }
        Ok(())
    }

    /// Writes a piece. Creates its znode if there is none.
    async fn write(
        &self,
        published: &mut Vec<Published>,
        index: usize,
        content: Content,
    ) -> Result<(), Error> {
        match published.get_mut(index) {
            Some(known) => match known.set(&self.session, self.text(&content)).await {
                Ok(()) => {
                    known.content = Some(content);
                    Ok(())
                }
                Err(error) if is_missing(&error) => {
                    *known = self.create(index, content).await?;
                    Ok(())
                }
                Err(error) => Err(error),
            },
            None => {
                published.push(self.create(index, content).await?);
                Ok(())
            }
        }
    }

    fn text(&self, content: &Content) -> Vec<u8> {
        let line = |(partition, own): (&Arc<str>, &Own)| {
            (partition.to_string(), owned::word(own.token, own.since))
        };
        let piece = Piece {
            of: content.of,
            note: self.address.clone(),
            lines: content.owned.iter().map(line).collect(),
        };
        piece.text(OWNED)
    }

    async fn create(&self, index: usize, content: Content) -> Result<Published, Error> {
        let data = self.text(&content);
        let name = pieces::name(&self.worker, index);
        let path = self.directory.join(&name)?;
        // It would bar the record for good.
        if is_persistent(&self.session, &path).await? {
            let problem = "is a persistent znode, where the worker publishes what it owns";
            return Err(InvalidInput::new("path", path.as_str(), problem).into());
        }
        let created = Arc::new(AtomicI64::new(0));
        let own = created.clone();
        let is_own = move |_: &[u8], stat: &Stat| match own.load(Ordering::Relaxed) {
            0 => true,
            created => stat.czxid == created,
        };
        let znode = NamedZnode::begin(&self.session, &path, is_own).await?;
        let mut backoff = Backoff::default();
        let stat = loop {
            // An earlier session of this worker may not have expired yet.
            let create = znode.create_or_wait(&data, &self.acl, Directories::Persistent);
            match create.await {
                // If the znode were begun anew, the deletion of this one would meet its create.
                Err(Error::Refused {
                    refusal: Refusal::Throttled,
                    ..
                }) => backoff.wait().await,
                created => break created?,
            }
        };
        created.store(stat.czxid, Ordering::Relaxed);
        Ok(Published {
            _znode: znode,
            session: SessionId(stat.ephemeral_owner),
            path,
            content: Some(content),
        })
    }
}

impl Published {
    async fn set(&self, session: &Session, data: Vec<u8>) -> Result<(), Error> {
        let operation = [Operation::set_data(self.path.as_str(), &*data)];
        let mut backoff = Backoff::default();
        loop {
            let server = session.server(&self.path).await?;
            if server.id() != self.session {
                return Err(session_over(&self.path, self.session, SessionEnd::Expired));
            }
            match server.transact(&operation).await {
                Ok(_) => return Ok(()),
                Err(TransactionError {
                    error: ServerError::OutcomeUnknown(_) | ServerError::Refused(Refusal::Throttled),
                    ..
                }) => {}
                Err(failure) => {
                    let (path, id) = (self.path.as_str(), self.session);
                    return Err(Error::at_transaction(path, id, failure, &operation));
                }
            }
            drop(server);
            backoff.wait().await;
        }
    }
}

/// True if somebody has deleted the znode.
fn is_missing(error: &Error) -> bool {
    let no_node = |refusal: &Refusal| *refusal == Refusal::NoNode;
    matches!(error, Error::Refused { refusal, .. } if no_node(refusal))
}

fn session_over(path: &NodePath, session: SessionId, reason: SessionEnd) -> Error {
    Error::SessionOver {
        path: path.to_string(),
        session,
        reason,
    }
}
