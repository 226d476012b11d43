//! The replacement of a holder's znode by one of another kind.

use std::pin::pin;

use crate::contender::Contender;
use crate::error::Error;
use crate::hold::grant::Grant;
use crate::hold::own_znode::ZnodeOwner;
use crate::hold_state::{HoldState, LossReason};
use crate::invalid_input::InvalidInput;
use crate::live::live_session::LiveSession;
use crate::live::short_leases::LeaseWait;
use crate::retry::Backoff;
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
        let znodes = self.owner.znode.znodes().clone();
        let live = znodes.live.clone();
        let old = self.owner.znode.path().to_owned();
        let (directory, contender) = self.replaceable(&old, from)?;
        let identity = live.identity();
        let name = format!("{}{}", identity.name(to), contender.sequence());
        let new = format!("{directory}/{name}");
        // If this future is dropped from here on, both znodes must be deleted.
        let new_owner = ZnodeOwner::new(&self.owner.session_use, znodes.numbered(&new));
        new_owner.znode.count_replacement();
        let granted = &self.entry.registry;
        // This future may not be polled when the lease lapses.
        let registered = granted.add_replacement(self.lapses, new_owner.znode.clone());
        let replaced = pin!(async {
            replace_znode(&live, &old, &new, data, acl).await?;
            // The new znode may have been found over a connection that is not proven yet.
            match live.until_may_grant(&old, &mut LeaseWait::default()).await {
                // Meanwhile the lease has lapsed, and the hold is lost.
                Err(Error::NoLease { .. }) => Ok(()),
                proven => proven,
            }
        });
        live.during(&old, replaced).await?;
        // `hold_state` sees a lapse before this drop. After each later lapse, the supervisor looks
        // for lost grants, and finds the new one.
        drop(registered);
        let lost = |reason| Error::lost(&old, live.id, reason);
        if let HoldState::Lost(reason) = live.hold_state(self.lapses) {
            return Err(lost(reason));
        }
        let lapses = live
            .begin_grant()
            .ok_or_else(|| lost(LossReason::LeaseElapsed))?;
        // The transaction has deleted the old znode.
        self.owner.disown();
        let mut grant = Grant::new(new_owner, granted, lapses, self.token, None);
        grant.rule = self.rule.clone();
        Ok(grant)
    }

    /// The directory and the contender, if the rule allows the replacement.
    fn replaceable<'p>(
        &self,
        path: &'p str,
        from: &str,
    ) -> Result<(&'p str, Contender), InvalidInput> {
        let refuse = |problem: String| Err(InvalidInput::new("hold", path, problem));
        let Some((directory, name)) = path.rsplit_once('/') else {
            return refuse("has no directory".to_owned());
        };
        let Some(contender) = Contender::parse(name, |label| label == from) else {
            return refuse(format!("does not have the label {from:?}"));
        };
        if self
            .rule
            .as_ref()
            .is_some_and(|rule| !rule.hints().may_be_replaced(from))
        {
            return refuse("is of a kind that may not be replaced".to_owned());
        }
        if contender.sequence().is_at_the_end() {
            // Such numbers are ordered by `czxid`, and the new znode would be behind the
            // waiters.
            let problem = "has a number at the end of the count, so it may not be replaced";
            return refuse(problem.to_owned());
        }
        Ok((directory, contender))
    }
}

/// Creates the new znode and deletes the old one in one transaction.
///
/// While no answer comes, the transaction is repeated.
async fn replace_znode(
    live: &LiveSession,
    old: &str,
    new: &str,
    data: &[u8],
    acl: &[Acl],
) -> Result<(), Error> {
    let failed = |error| Error::at(old, live.id, error);
    let deleted = || Error::lost(old, live.id, LossReason::Deleted);
    let server = live.server().map_err(failed)?;
    let operations = [
        Operation::create(new, data, CreateMode::Ephemeral, acl),
        Operation::delete(old),
    ];
    let both = [new.to_owned(), old.to_owned()];
    let mut backoff = Backoff::default();
    loop {
        match server.transact(&operations).await {
            Ok(_) => return Ok(()),
            Err(TransactionError {
                error: ServerError::OutcomeUnknown(_),
                ..
            }) => {}
            // The old znode is deleted, or the directory with it.
            Err(TransactionError { error, .. }) if error.is(Refusal::NoNode) => {
                return Err(deleted());
            }
            // Nobody else uses this name, so an earlier transaction succeeded and its answer
            // was lost.
            Err(TransactionError {
                operation: Some(0),
                error,
            }) if error.is(Refusal::NodeExists) => {}
            Err(failure) => {
                return Err(Error::at_transaction(old, live.id, failure, &operations));
            }
        }
        let sync = server.sync(old);
        let nodes = server.get_each(&both);
        let found = async {
            sync.await?;
            nodes.await
        };
        match found.await.as_deref() {
            Ok([Some(_), _]) => return Ok(()),
            Ok([None, Some(_)]) => {}
            Ok(_) => return Err(deleted()),
            Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
            Err(error) => return Err(failed(error.clone())),
        }
    }
}
