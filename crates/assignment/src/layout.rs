//! The znodes of an assignment.

use std::sync::Arc;

use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Acl, CreateMode, Error, InvalidInput, NodePath, Refusal, Session};

use crate::retry::repeat;

/// The paths of an assignment: see its [znodes](crate::Assignment#znodes).
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) base: NodePath,
    pub(crate) workers: NodePath,
    pub(crate) leader: NodePath,
    pub(crate) plan: NodePath,
    pub(crate) owned: NodePath,
    pub(crate) locks: NodePath,
    pub(crate) partitions: NodePath,
    pub(crate) orders: NodePath,
    /// The workers that should own nothing.
    pub(crate) drains: NodePath,
    /// The partitions that are pinned to a worker.
    pub(crate) pins: NodePath,
}

/// The order that freezes the plan: a child of the orders.
pub(crate) const FREEZE: &str = "freeze";

impl Layout {
    pub(crate) fn new(base: &str) -> Result<Layout, InvalidInput> {
        let base = NodePath::new(base)?;
        let orders = base.join("orders")?;
        Ok(Layout {
            workers: base.join("workers")?,
            leader: base.join("leader")?,
            plan: base.join("plan")?,
            owned: base.join("owned")?,
            locks: base.join("locks")?,
            partitions: base.join("partitions")?,
            drains: orders.join("drain")?,
            pins: orders.join("move")?,
            orders,
            base,
        })
    }

    /// Creates the directories that are missing.
    pub(crate) async fn create(&self, session: &Session, acl: &[Acl]) -> Result<(), Error> {
        let directories = [
            &self.plan,
            &self.owned,
            &self.locks,
            &self.partitions,
            &self.drains,
            &self.pins,
        ];
        for directory in directories {
            create_directory(session, directory, acl).await?;
        }
        Ok(())
    }
}

/// True if there is a persistent znode at the path, where the znode of a worker should be.
pub(crate) async fn is_persistent(session: &Session, path: &NodePath) -> Result<bool, Error> {
    let server = session.server(path).await?;
    let found = server.get_each(&[path.to_string()]).await;
    let found = found.map_err(|error| Error::at(path.as_str(), server.id, error))?;
    let mut found = found.into_iter().flatten();
    Ok(found.any(|(_, stat)| stat.ephemeral_owner == 0))
}

/// Creates a persistent znode without data, and its missing parents, unless it exists.
pub(crate) async fn create_directory(
    session: &Session,
    path: &NodePath,
    acl: &[Acl],
) -> Result<(), Error> {
    let create = async |server: Arc<ServerSession>| {
        let mut missing = vec![path.clone()];
        while let Some(next) = missing.last() {
            let created = server.create(next.as_str(), b"", CreateMode::Persistent, acl);
            match created.await {
                Err(error) if error.is(Refusal::NoNode) && next.parent().is_some() => {
                    missing.extend(next.parent());
                }
                Err(error) if !error.is(Refusal::NodeExists) => {
                    return Err(Error::at_create(next.as_str(), server.id, error));
                }
                _ => drop(missing.pop()),
            }
        }
        Ok(Some(()))
    };
    repeat(session, path, create).await
}
