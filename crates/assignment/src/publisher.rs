//! The task of a worker that publishes what the worker owns.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::ensemble::{Operation, ServerSession};
use zookeeper_recipes_core::{
    Backoff, Directories, Error, InvalidInput, NamedZnode, NodePath, QueueOptions, Refusal,
    SessionEnd, SessionId, SessionState, Stat,
};

use crate::assignment::Assignment;
use crate::events::report;
use crate::layout::is_persistent;
use crate::owned::{Owns, lines};
use crate::pieces::{self, OWNED, Piece, arrange};
use crate::retry::{may_pass, refusal};

/// What changes within this time after a write is published by one more.
///
/// While a worker acquires thousands of partitions, it would otherwise do little else.
const REST: Duration = Duration::from_millis(50);

/// How often the publisher looks for partitions that are lost. Others report their loss themselves,
/// but not work that blocks its thread.
const LOOK: Duration = Duration::from_secs(10);

/// A piece of what the worker owns, at the server until it is dropped.
struct Published {
    /// If it is dropped, the znode is deleted in the background.
    _znode: NamedZnode,
    session: SessionId,
    path: NodePath,
    piece: Piece,
    at_server: AtServer,
}

/// What a worker knows of the znode of a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtServer {
    /// It has the piece.
    Known,
    /// It may have other data, or be gone.
    Unknown,
    /// It is the znode of another session.
    Foreign,
}

impl Assignment {
    /// Publishes what the worker owns, in ephemeral znodes. Returns if the session is closed, or
    /// there is a persistent znode at the name of one.
    pub(crate) async fn publish(&self, mut owns: watch::Receiver<Owns>) -> Error {
        let mut backoff = Backoff::default();
        let mut published = Vec::new();
        let mut states = self.session.states();
        // The first one is the state now.
        let _ = states.next().await;
        loop {
            let publish =
                self.publish_changes(&mut owns, &mut states, &mut published, &mut backoff);
            let Err(error) = publish.await;
            match error {
                Error::NoSession { .. } | Error::InvalidInput(_) => return error,
                Error::SessionOver { .. } => published.clear(),
                // In the same session, the deletion of a dropped piece would meet its next create.
                _ => {}
            }
            match may_pass(&error) {
                true => report!(self, debug, "publishing again", %error),
                false => report!(self, warn, "not published", %error),
            }
            backoff.wait().await;
        }
    }

    /// Publishes until an error.
    async fn publish_changes(
        &self,
        owns: &mut watch::Receiver<Owns>,
        states: &mut (impl Stream<Item = SessionState> + Unpin),
        published: &mut Vec<Published>,
        backoff: &mut Backoff,
    ) -> Result<Infallible, Error> {
        loop {
            let owned = owns.borrow_and_update().clone();
            let old = published.iter().map(|it| &it.piece);
            let pieces = arrange(old, &self.options.address, lines(owned));
            let mut has_written = false;
            for (index, piece) in pieces.into_iter().enumerate() {
                match published.get_mut(index) {
                    Some(known) if known.at_server == AtServer::Known && known.piece == piece => {
                        continue;
                    }
                    Some(known) => self.write_piece(known, index, piece).await?,
                    None => published.push(self.create_piece(index, piece).await?),
                }
                has_written = true;
            }
            *backoff = Backoff::default();
            if has_written {
                sleep(REST).await;
            }
            tokio::select! {
                biased;
                // The sender lives longer than this future.
                _ = timeout(LOOK, owns.changed()) => {}
                state = states.next() => match state {
                    Some(SessionState::Suspended(_)) => {}
                    _ => self.compare_pieces(published).await?,
                },
            }
        }
    }

    /// The server of the session that has created the znode.
    async fn server_of(&self, known: &Published) -> Result<Arc<ServerSession>, Error> {
        let server = self.session.server(&known.path).await?;
        match server.id == known.session {
            true => Ok(server),
            false => Err(Error::SessionOver {
                path: known.path.to_string(),
                session: known.session,
                reason: SessionEnd::Expired,
            }),
        }
    }

    /// Notes each piece that is another one at the server: a backup was restored, or somebody has
    /// written there. The znode of an earlier session may have come back.
    async fn compare_pieces(&self, published: &mut [Published]) -> Result<(), Error> {
        let server = self.server_of(&published[0]).await?;
        let paths: Vec<String> = published.iter().map(|it| it.path.to_string()).collect();
        let found = server.get_each(&paths).await;
        let found = found.map_err(|error| Error::at(&paths[0], server.id, error))?;
        for (known, found) in published.iter_mut().zip(found) {
            let is_foreign = |stat: &Stat| SessionId(stat.ephemeral_owner) != known.session;
            known.at_server = match found {
                Some((_, stat)) if is_foreign(&stat) => AtServer::Foreign,
                Some((data, _))
                    if known.at_server == AtServer::Known && data == known.piece.text(OWNED) =>
                {
                    AtServer::Known
                }
                _ => AtServer::Unknown,
            };
        }
        Ok(())
    }

    /// Writes a piece. Creates its znode if somebody has deleted it, or if that of another session is
    /// there, which goes with its session.
    async fn write_piece(
        &self,
        known: &mut Published,
        index: usize,
        piece: Piece,
    ) -> Result<(), Error> {
        let (path, session) = (known.path.as_str(), known.session);
        let server = self.server_of(known).await?;
        if known.at_server == AtServer::Foreign {
            *known = self.create_piece(index, piece).await?;
            return Ok(());
        }
        let operation = [Operation::set_data(path, piece.text(OWNED))];
        // If the write has no answer, the partitions stay where it may have put them.
        (known.piece, known.at_server) = (piece, AtServer::Unknown);
        match server.transact(&operation).await {
            Ok(_) => known.at_server = AtServer::Known,
            Err(failure) if failure.error.is(Refusal::NoNode) => {
                *known = self.create_piece(index, known.piece.clone()).await?;
            }
            Err(failure) => return Err(Error::at_transaction(path, session, failure, &operation)),
        }
        Ok(())
    }

    async fn create_piece(&self, index: usize, piece: Piece) -> Result<Published, Error> {
        let data = piece.text(OWNED);
        let path = self.layout.owned.join(&pieces::name(&self.id, index))?;
        // It would bar the record for good.
        if is_persistent(&self.session, &path).await? {
            let problem = "is a persistent znode, where the worker publishes what it owns";
            return Err(InvalidInput::new("path", path.as_str(), problem).into());
        }
        let options = QueueOptions::new().acl(self.options.acl.clone());
        let options = options.directories(Directories::Persistent);
        let created = Arc::new(AtomicI64::new(0));
        let own = created.clone();
        let is_own = move |_: &[u8], stat: &Stat| match own.load(Ordering::Relaxed) {
            0 => true,
            created => stat.czxid == created,
        };
        let mut znode = NamedZnode::begin(&self.session, &path, &options, is_own).await?;
        let mut backoff = Backoff::default();
        let stat = loop {
            // An earlier session of this worker may not have expired yet.
            match znode.create_or_wait(&data).await {
                // If the znode were begun anew, the deletion of this one would meet its create.
                Err(error) if refusal(&error) == Some(&Refusal::Throttled) => backoff.wait().await,
                created => break created?,
            }
        };
        created.store(stat.czxid, Ordering::Relaxed);
        Ok(Published {
            _znode: znode,
            session: SessionId(stat.ephemeral_owner),
            path,
            piece,
            at_server: AtServer::Known,
        })
    }
}
