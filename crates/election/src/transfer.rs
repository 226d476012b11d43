//! Transfers of the leadership: naming the successor, and resigning for it.

use std::future::poll_fn;
use std::task::{Context, Poll};

use futures_util::future::FutureExt;
use zookeeper_recipes_core::ensemble::{ServerSession, Watch};
use zookeeper_recipes_core::{
    Backoff, Contender, Error, HoldView, InvalidInput, QueueView, ServerError,
};

use crate::candidate::Candidate;
use crate::directory_data::DirectoryData;
use crate::rule::{candidate_named, may_step_back, steps_back};

impl Candidate {
    /// Names the successor: as the leader of this view, or as any process.
    pub(crate) async fn name_successor(
        &self,
        id: &str,
        leader: Option<&HoldView>,
    ) -> Result<(), Error> {
        let contenders = self.queue.contenders().await?;
        let mut contenders = contenders.into_iter();
        let successor = contenders.find(|contender| contender.data == id.as_bytes());
        let name = successor.map(|successor| successor.name).ok_or_else(|| {
            let problem = format!("does not campaign at {}", self.path());
            InvalidInput::new("the candidate", id, problem)
        })?;
        let name_it = |data: &mut DirectoryData| data.successor = Some(name.clone());
        self.update_directory(leader, name_it).await
    }

    /// Waits until the leader of this view has to resign for another candidate.
    ///
    /// Never resolves once the leadership is lost.
    pub(crate) async fn until_asked_to_resign(&self, leader: &HoldView) {
        let name = leader.node_path().rsplit('/').next();
        if let Some(me) = name.and_then(candidate_named) {
            tokio::select! {
                biased;
                _ = leader.ended() => {}
                true = self.has_to_resign(&me) => return,
            }
        }
        std::future::pending().await
    }

    /// Resolves with true once this leader has to resign, and with false once the session is closed.
    async fn has_to_resign(&self, me: &Contender) -> bool {
        let mut backoff = Backoff::default();
        loop {
            let Ok(server) = self.session().server(self.path()).await else {
                return false;
            };
            let checked = self.check_for_successor(me, &server).await;
            drop(server);
            match checked {
                Ok(None) => return true,
                Ok(Some(changed)) => {
                    backoff = Backoff::default();
                    changed.await;
                }
                Err(error) => {
                    tracing::debug!(target: "zookeeper_recipes", path = %self.path(), %error, "reading the successor again");
                    backoff.wait().await;
                }
            }
        }
    }

    /// `None` if this leader has to resign; otherwise a watch that fires when that may change.
    async fn check_for_successor(
        &self,
        me: &Contender,
        server: &ServerSession,
    ) -> Result<Option<Watch>, ServerError> {
        let path = self.path().as_str();
        let (data, _, data_changed) = server.get_and_watch(path).await?;
        if !may_step_back(me, &data) {
            return Ok(Some(data_changed));
        }
        let (names, names_changed) = server.list_and_watch(path).await?;
        let others = names.iter().filter(|name| *name != me.name());
        let behind: Vec<Contender> = others.filter_map(|name| candidate_named(name)).collect();
        if steps_back(&QueueView::new(&[], me, Some(&data)).with_behind(&behind)) {
            return Ok(None);
        }
        Ok(Some(either(data_changed, names_changed)))
    }
}

/// Fires with the first of two watches. Both stay set until it is dropped.
pub(crate) fn either(mut left: Watch, mut right: Watch) -> Watch {
    let first = move |context: &mut Context<'_>| match left.poll_unpin(context) {
        Poll::Pending => right.poll_unpin(context),
        fired => fired,
    };
    poll_fn(first).boxed()
}
