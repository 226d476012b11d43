//! The state of an assignment at the server: several directories, and the record of the partitions.

use futures_util::future::{FutureExt, select_all, try_join_all};
use zookeeper_recipes_core::ensemble::{ServerSession, Watch};
use zookeeper_recipes_core::{NodePath, ServerError};

use crate::children::{Children, ChildrenOf};
use crate::kept::Source;
use crate::recorded::{Recorded, read};

/// Several directories, and the record of the partitions.
pub(crate) struct StateOf<const N: usize> {
    directories: [ChildrenOf; N],
    path: NodePath,
    /// `None` if the record must be read.
    record: Option<(Recorded, Watch)>,
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

    async fn read(&mut self, server: &ServerSession) -> Result<Self::Value, ServerError> {
        let children = self.directories.iter_mut().map(|it| it.read(server));
        let children = try_join_all(children).await?;
        if self.record.is_none() {
            // The watch comes first, so that no change after the read is missed.
            let (_, changed) = server.exists_and_watch(self.path.as_str()).await?;
            let recorded = read(server, &self.path).await?.recorded;
            self.record = Some((recorded, changed));
        }
        let recorded = self.record.as_ref().map(|it| it.0.clone());
        Ok((children, recorded.unwrap_or_default()))
    }

    async fn changed(&mut self) {
        let directories = self.directories.iter_mut().map(|it| it.changed().boxed());
        let record = async {
            if let Some((_, changed)) = &mut self.record {
                changed.await;
            }
            self.record = None;
        };
        select_all(directories.chain([record.boxed()])).await;
    }
}
