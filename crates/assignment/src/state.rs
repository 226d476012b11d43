//! The state of an assignment at the server: several directories, and the record of the partitions.

use futures_util::future::{FutureExt, select_all, try_join_all};
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{NodePath, ServerError};

use crate::children::{Children, ChildrenOf};
use crate::kept::Source;
use crate::recorded::{Read, Recorded, read};

/// Several directories, and the record of the partitions.
pub(crate) struct StateOf<const N: usize> {
    directories: [ChildrenOf; N],
    path: NodePath,
    /// `None` if the record must be read.
    record: Option<Read>,
}

impl<const N: usize> StateOf<N> {
    pub(crate) fn new(directories: [&NodePath; N], record: &NodePath) -> StateOf<N> {
        StateOf {
            directories: directories.map(ChildrenOf::new),
            path: record.clone(),
            record: None,
        }
    }
}

impl<const N: usize> Source for StateOf<N> {
    /// The children of each directory, in their order.
    type Value = (Vec<Children>, Recorded);

    fn path(&self) -> &NodePath {
        &self.path
    }

    fn reset(&mut self) {
        self.directories.iter_mut().for_each(Source::reset);
        self.record = None;
    }

    async fn read(&mut self, server: &dyn ServerSession) -> Result<Self::Value, ServerError> {
        let children = self.directories.iter_mut().map(|it| it.read(server));
        let children = try_join_all(children).await?;
        let record = match self.record.take() {
            Some(record) => record,
            None => read(server, &self.path, true).await?,
        };
        let recorded = record.recorded.clone();
        self.record = Some(record);
        Ok((children, recorded))
    }

    async fn changed(&mut self) {
        let directories = self.directories.iter_mut().map(|it| it.changed().boxed());
        let record = async {
            if let Some(changed) = self.record.as_mut().and_then(|it| it.changed.as_mut()) {
                changed.await;
            }
            self.record = None;
        };
        select_all(directories.chain([record.boxed()])).await;
    }
}
