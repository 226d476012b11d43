//! What steers an election: the candidate that leads next, and what the leader proclaims.

use futures_util::future::{Either, select};
use zookeeper_recipes_core::ensemble::{ServerSession, Watch};
use zookeeper_recipes_core::{Contender, Error, HoldView, InvalidInput, Rule, ServerError};

use crate::backoff::Backoff;
use crate::candidate::Candidate;
use crate::notice::Notice;
use crate::post::post;
use crate::rule::candidate_named;

impl Candidate {
    /// Names the successor, by the leader of this view or by anybody.
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
        let change = |notice: &mut Notice| notice.successor = Some(name.clone());
        post(self.session(), self.path(), leader, change).await
    }

    /// Posts what this leader says of itself.
    pub(crate) async fn proclaim(&self, said: &str, leader: &HoldView) -> Result<(), Error> {
        let token = leader.fencing_token();
        let change = |notice: &mut Notice| {
            notice.proclaimed = Some((token, said.to_owned()));
        };
        post(self.session(), self.path(), Some(leader), change).await
    }

    /// Waits until the leader of this view has to resign for another candidate.
    ///
    /// Waits for ever once the leadership is lost, which the leader learns by the hold.
    pub(crate) async fn until_asked(&self, leader: &HoldView) {
        let name = leader.node_path().rsplit('/').next();
        if let Some(me) = name.and_then(candidate_named) {
            tokio::select! {
                biased;
                _ = leader.lost() => {}
                true = self.is_asked(&me) => return,
            }
        }
        std::future::pending().await
    }

    /// True once this leader has to resign. False if the session is over for good.
    async fn is_asked(&self, me: &Contender) -> bool {
        let mut backoff = Backoff::new();
        loop {
            let Ok(server) = self.session().server(self.path()).await else {
                return false;
            };
            match self.look_behind(me, &*server).await {
                Ok(None) => return true,
                Ok(Some(changed)) => {
                    drop(server);
                    backoff = Backoff::new();
                    changed.await;
                }
                Err(error) => {
                    tracing::debug!(path = %self.path(), %error, "looking again for a successor");
                    drop(server);
                    backoff.wait().await;
                }
            }
        }
    }

    /// `None` if this leader has to resign; otherwise resolves when that may have changed.
    async fn look_behind(
        &self,
        me: &Contender,
        server: &dyn ServerSession,
    ) -> Result<Option<Watch>, ServerError> {
        let path = self.path().as_str();
        let (data, _, data_changed) = server.get_and_watch(path).await?;
        if !self.rule.may_step_back(me, Some(&data)) {
            return Ok(Some(data_changed));
        }
        let (names, names_changed) = server.list_and_watch(path).await?;
        let others = names.iter().filter(|name| *name != me.name());
        let behind: Vec<Contender> = others.filter_map(|name| candidate_named(name)).collect();
        if self.rule.steps_back(me, &behind, Some(&data)) {
            return Ok(None);
        }
        Ok(Some(either(data_changed, names_changed)))
    }
}

/// Resolves with the first of two watches.
pub(crate) fn either(left: Watch, right: Watch) -> Watch {
    Box::pin(async move {
        match select(left, right).await {
            Either::Left((event, _)) | Either::Right((event, _)) => event,
        }
    })
}
