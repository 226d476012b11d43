//! Several directories and the record of the partitions, all kept up to date.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FutureExt, select_all};
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes_core::{Error, NodePath, Session};

use crate::children::{Children, ChildrenOf};
use crate::kept::{Kept, keep};
use crate::recorded::{RecordAt, Recorded};

/// The children of several directories, and the record.
pub(crate) struct KeptState<const N: usize> {
    directories: [Kept<Children>; N],
    record: Option<Kept<Recorded>>,
}

impl<const N: usize> KeptState<N> {
    pub(crate) fn new(
        session: &Session,
        directories: [&NodePath; N],
        record: Option<&NodePath>,
    ) -> Self {
        KeptState {
            directories: directories.map(|it| keep(session, ChildrenOf::new(it))),
            record: record.map(|it| keep(session, RecordAt::new(it))),
        }
    }

    /// The children of each directory. `None` if one is not known yet.
    pub(crate) fn children(&mut self) -> Option<[Arc<Children>; N]> {
        let known = self.directories.iter_mut();
        let known: Option<Vec<_>> = known.map(|it| it.borrow_and_update().clone()).collect();
        known?.try_into().ok()
    }

    /// The record, if it is known.
    pub(crate) fn record(&mut self) -> Option<Arc<Recorded>> {
        self.record.as_mut()?.borrow_and_update().clone()
    }

    /// Waits until a part has changed. False if the session is closed.
    pub(crate) async fn changed(&mut self) -> bool {
        let directories = self.directories.iter_mut().map(|it| it.changed().boxed());
        let record = self.record.iter_mut().map(|it| it.changed().boxed());
        select_all(directories.chain(record)).await.0.is_ok()
    }

    /// Watches what follows from the state, by a task that ends with the last receiver. What changes
    /// within the interval leads to one new value.
    ///
    /// Returns once the state is known.
    pub(crate) async fn watch<T: PartialEq + Send + Sync + 'static>(
        mut self,
        session: &Session,
        path: &NodePath,
        interval: Duration,
        value: impl Fn(&mut Self) -> Option<T> + Send + Sync + 'static,
    ) -> Result<watch::Receiver<T>, Error> {
        let first = loop {
            if let Some(first) = value(&mut self) {
                break first;
            }
            if !self.changed().await {
                // The session says why.
                session.server(path).await?;
            }
        };
        let (sender, receiver) = watch::channel(first);
        let task = async move {
            let keep_up_to_date = async {
                while self.changed().await {
                    sleep(interval).await;
                    let Some(new) = value(&mut self) else {
                        continue;
                    };
                    sender.send_if_modified(|now| {
                        let is_new = *now != new;
                        *now = new;
                        is_new
                    });
                }
            };
            tokio::select! {
                biased;
                () = sender.closed() => {}
                () = keep_up_to_date => {}
            }
        };
        tokio::spawn(session.ensemble().task(task.boxed()));
        Ok(receiver)
    }
}
