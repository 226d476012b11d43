//! A hold that goes on as one of another kind.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::contender::Contender;
use crate::error::Error;
use crate::hold::grant::Grant;
use crate::hold::own_znode::OwnNode;
use crate::hold::owned::Owned;
use crate::hold_state::{HoldState, LossReason};
use crate::invalid_input::InvalidInput;
use crate::server::ensemble::{Acl, CreateMode, Operation, TransactionError};
use crate::server::error::{Refusal, ServerError};

impl Grant {
    /// Replaces the znode by one with the same number and another label.
    pub(crate) async fn replace(
        mut self,
        from: &str,
        to: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<Grant, Error> {
        let live = self.owned.live.clone();
        let old = self.owned.node.path().to_owned();
        let id = live.id();
        let at = |error| Error::at(old.as_str(), id, error);
        let lost = |reason| Error::Lost {
            path: old.clone(),
            session: id,
            reason,
        };
        let Some((directory, name)) = old.rsplit_once('/') else {
            return Err(InvalidInput::new("hold", old, "has no directory").into());
        };
        let Some(contender) = Contender::parse(name, |label| label == from) else {
            let problem = format!("has not the label {from:?}");
            return Err(InvalidInput::new("hold", old, problem).into());
        };
        if self
            .rule
            .as_ref()
            .is_some_and(|rule| !rule.may_be_replaced(from))
        {
            let problem = "is of a kind whose place in the queue no other takes";
            return Err(InvalidInput::new("hold", old, problem).into());
        }
        if contender.sequence().is_at_the_end() {
            // Ordered by `czxid`, the new znode would be behind those who wait.
            let problem = "has a number at the end of the count, which is no place in the queue";
            return Err(InvalidInput::new("hold", old, problem).into());
        }
        let name = format!(
            "{}{}",
            self.owned.session.ensemble().identity().name(to),
            contender.sequence()
        );
        let new = format!("{directory}/{name}");
        // From here on both znodes have to be given up, should this be dropped.
        let session = self.owned.session.clone();
        let successor = Owned::new(&session, &live, OwnNode::unique(&live, &new));
        let replace = async {
            let server = live.server().map_err(at)?;
            let operations = [
                Operation::Create {
                    path: new.clone(),
                    data: data.to_owned(),
                    mode: CreateMode::Ephemeral,
                    acl: acl.to_owned(),
                },
                Operation::Delete {
                    path: old.clone(),
                    version: None,
                },
            ];
            let both = [new.clone(), old.clone()];
            let mut backoff = Backoff::up_to(Duration::from_secs(1));
            loop {
                match server.transact(&operations).await {
                    Ok(_) => return Ok(()),
                    Err(TransactionError {
                        error: ServerError::OutcomeUnknown(_),
                        ..
                    }) => {}
                    // The old znode has gone, or even the directory.
                    Err(TransactionError { error, .. }) if error.is(Refusal::NoNode) => {
                        return Err(lost(LossReason::Deleted));
                    }
                    // Nobody else uses that name: it was done, and the answer lost.
                    Err(TransactionError {
                        operation: Some(0),
                        error,
                    }) if error.is(Refusal::NodeExists) => {}
                    Err(failure) => return Err(at(failure.error)),
                }
                let sync = server.sync(&old);
                let nodes = server.get_each(&both);
                let found = async {
                    sync.await?;
                    nodes.await
                };
                match found.await.as_deref() {
                    Ok([Some(_), _]) => return Ok(()),
                    Ok([None, Some(_)]) => {}
                    Ok(_) => return Err(lost(LossReason::Deleted)),
                    Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                    Err(error) => return Err(at(error.clone())),
                }
            }
        };
        live.during(&old, replace).await?;
        if let HoldState::Lost(reason) = live.standing(self.lapses) {
            return Err(lost(reason));
        }
        let lapses = live
            .may_grant()
            .ok_or_else(|| lost(LossReason::LeaseElapsed))?;
        // The transaction has deleted the old znode.
        self.owned.settle();
        let mut grant = Grant::new(successor, lapses, self.token, None);
        grant.rule = self.rule.clone();
        Ok(grant)
    }
}
