//! The task of a worker that publishes what the worker owns.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::FutureExt;
use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::{Operation, Reply, ServerSession};
use zookeeper_recipes_core::{
    Acl, Error, FencingToken, NodePath, OwnedZnode, Refusal, Removal, ServerError, Session,
};

use crate::backoff::Backoff;
use crate::events::TARGET;
use crate::owned::OWNED;
use crate::pieces::{self, Lines, Piece, arrange};

/// What a worker owns now, for the task that publishes it.
pub(crate) type Owns = watch::Sender<BTreeMap<String, FencingToken>>;

/// Publishes what a worker owns, in ephemeral znodes.
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) session: Session,
    pub(crate) directory: NodePath,
    pub(crate) worker: String,
    pub(crate) address: String,
    pub(crate) acl: Vec<Acl>,
}

/// A piece at the server, until it is dropped.
struct Published {
    znode: OwnedZnode,
    path: String,
    data: Vec<u8>,
}

#[derive(Debug)]
struct OwnPiece {
    path: String,
}

impl Removal for OwnPiece {
    fn path(&self) -> &str {
        &self.path
    }

    fn remove<'a>(&'a self, server: &'a dyn ServerSession, _: bool) -> Reply<'a, ()> {
        let removed = async move {
            let (_, stat) = server.get(&self.path).await?;
            match stat.ephemeral_owner == server.id().0 {
                true => server.delete(&self.path).await,
                false => Ok(()),
            }
        };
        removed.boxed()
    }
}

impl Publisher {
    /// Keeps the znodes up to date. Returns if the session is closed.
    pub(crate) async fn run(
        &self,
        mut owns: watch::Receiver<BTreeMap<String, FencingToken>>,
    ) -> Error {
        let mut backoff = Backoff::new();
        loop {
            match self.publish(&mut owns, &mut backoff).await {
                error @ Error::NoSession { .. } => return error,
                error => {
                    tracing::debug!(target: TARGET, path = %self.directory, worker = self.worker, %error, "publishing again");
                }
            }
            backoff.wait().await;
        }
    }

    /// Publishes until an error.
    async fn publish(
        &self,
        owns: &mut watch::Receiver<BTreeMap<String, FencingToken>>,
        backoff: &mut Backoff,
    ) -> Error {
        let mut published: Vec<Published> = Vec::new();
        let mut pieces: Vec<Lines> = Vec::new();
        loop {
            let line = |(partition, token): (&String, &FencingToken)| {
                (partition.clone(), token.get().to_string())
            };
            let lines = owns.borrow_and_update().iter().map(line).collect();
            pieces = arrange(&pieces, lines);
            for (index, lines) in pieces.iter().enumerate() {
                let piece = Piece {
                    of: pieces.len(),
                    note: self.address.clone(),
                    lines: lines.clone(),
                };
                let data = piece.text(OWNED);
                let written = match published.get_mut(index) {
                    Some(known) if known.data == data => continue,
                    Some(known) => known.set(data).await,
                    None => match self.create(index, data).await {
                        Ok(created) => {
                            published.push(created);
                            Ok(())
                        }
                        Err(error) => Err(error),
                    },
                };
                if let Err(error) = written {
                    return error;
                }
            }
            *backoff = Backoff::new();
            let Some(first) = published.first() else {
                continue;
            };
            let changed = async {
                // The worker drops this future before the sender.
                let _ = owns.changed().await;
                Ok(())
            };
            if let Err(error) = first.znode.during(changed).await {
                return error;
            }
        }
    }

    async fn create(&self, index: usize, data: Vec<u8>) -> Result<Published, Error> {
        let name = pieces::name(&self.worker, index);
        let path = format!("{}/{name}", self.directory);
        let own = Arc::new(OwnPiece { path: path.clone() });
        let znode = OwnedZnode::begin(&self.session, own).await?;
        let create = async {
            let mut backoff = Backoff::new();
            loop {
                match znode.create(&data, &self.acl).await {
                    Ok(_) => return Ok(()),
                    // An earlier session of this worker has not expired yet, or the znode of an
                    // earlier run is being deleted.
                    Err(error) if error.is(Refusal::NodeExists) => znode.refused(),
                    Err(ServerError::OutcomeUnknown(_)) => {
                        znode
                            .server()
                            .prove()
                            .await
                            .map_err(|error| znode.failed(error))?;
                        match znode.server().get(&path).await {
                            Ok((_, stat)) if stat.ephemeral_owner == znode.session_id().0 => {
                                return Ok(());
                            }
                            _ => znode.before_another_create().await?,
                        }
                    }
                    Err(error) => {
                        znode.refused();
                        return Err(znode.failed(error));
                    }
                }
                backoff.wait().await;
            }
        };
        znode.during(create).await?;
        Ok(Published { znode, path, data })
    }
}

impl Published {
    async fn set(&mut self, data: Vec<u8>) -> Result<(), Error> {
        let operation = [Operation::SetData {
            path: self.path.clone(),
            data: data.clone(),
            version: None,
        }];
        let set = async {
            let mut backoff = Backoff::new();
            loop {
                match self.znode.server().transact(&operation).await {
                    Ok(_) => return Ok(()),
                    Err(failure) => match failure.error {
                        ServerError::OutcomeUnknown(_) => backoff.wait().await,
                        error => {
                            if error.is(Refusal::NoNode) {
                                self.znode.refused();
                            }
                            return Err(self.znode.failed(error));
                        }
                    },
                }
            }
        };
        self.znode.during(set).await?;
        self.data = data;
        Ok(())
    }
}
