//! The replacement of a holder's znode by one of another kind.

use std::pin::pin;
use std::sync::Arc;

use crate::contender::Contender;
use crate::error::Error;
use crate::hold::grant::Grant;
use crate::hold::own_znode::{ContenderName, ZnodeOwner};
use crate::hold::{Hold, how_ended};
use crate::hold_state::{HoldState, LossReason};
use crate::invalid_input::InvalidInput;
use crate::live::live_session::{LiveSession, SessionUse};
use crate::path::{NodePath, last_segment};
use crate::retry::Backoff;
use crate::server::ensemble::{Acl, CreateMode, Operation, TransactionError};
use crate::server::error::Refusal;

impl Hold {
    /// Replaces the holder's znode by one with the same number and another label.
    ///
    /// A write lock becomes a read lock in this way.
    ///
    /// One transaction creates the new znode and deletes the old one, so no other contender holds
    /// in between. `from` and `to` are the labels (see
    /// [`Contender::label`](crate::Contender::label)). The fencing token stays the same: it must be
    /// older than the tokens of the waiters, and the new znode's `czxid` is not. The views of the
    /// hold end. The time limit does not begin again.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if the label is not `from`, or the rule does not
    ///   [allow it](crate::Rule::may_be_replaced), or the number is at the end of the count:
    ///   such znodes are ordered by age, and the new one would be the youngest.
    /// * [`Error::Lost`], [`Error::Refused`] and [`Error::SessionOver`].
    ///
    /// After an error, or if the future is dropped, the hold is released.
    // Hidden: only a write lock has a kind of contender that its hold can become.
    #[doc(hidden)]
    pub async fn replace(
        self,
        from: &str,
        to: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<Hold, Error> {
        self.end_views()?;
        let old = &self.view.grant;
        let replaced = replaced(old, &self.owner.session_use, from, to, (data, acl)).await;
        if replaced.is_err() {
            old.report(how_ended(&replaced));
        }
        let (owner, record) = (replaced?, old.take_record());
        let record = record.expect("only its owner reports the end of a hold that is not lost");
        // The hold continues, so a lapse since its grant counts. The lease need not grant again.
        let terms = old.terms.clone();
        let recipe = terms.rule.as_ref().map_or("queue", |rule| rule.recipe(to));
        let record = record.replaced(recipe, old.held_for());
        Ok(Hold::begin(owner, &self.open, terms, record, None))
    }
}

/// Replaces the znode of a grant, and returns the owner of the new znode.
async fn replaced(
    old: &Grant,
    session_use: &Arc<SessionUse>,
    from: &str,
    to: &str,
    (data, acl): (&[u8], &[Acl]),
) -> Result<ZnodeOwner, Error> {
    let (live, path) = (old.live(), old.znode.path());
    let (directory, contender) = old.replaceable(from)?;
    let identity = live.identity();
    let new = format!("{directory}/{}{}", identity.name(to), contender.sequence());
    let name = ContenderName::at(directory, identity, new.clone());
    // If this future is dropped from here on, both znodes must be deleted.
    let znode = old.znode.znodes().contender(name.clone());
    let owner = ZnodeOwner::new(session_use, znode);
    owner.znode.count_replacement();
    // This future may not be polled when the lease lapses. The session then deletes both znodes. What it
    // finds is not noted for the owner: the transaction may be applied after that deletion.
    let _ = old.replacement.set(name);
    let mut delete = Operation::delete(path);
    if old.znode.is_closed_to_others() {
        // The waiters take another client's write for the release.
        delete = delete.at_version(0);
    }
    let create = Operation::create(new, data, CreateMode::Ephemeral, acl);
    let operations = [create, delete];
    let replacing = pin!(replace_znode(live, path, &operations));
    old.within_lease(replacing).await?;
    if let HoldState::Lost(reason) = live.hold_state(old.terms.epoch) {
        return Err(old.lost_by(reason));
    }
    // The transaction has deleted the old znode. Its owner then passes the turn on.
    old.znode.note_gone();
    Ok(owner)
}

/// Creates the new znode and deletes the old one in one transaction.
///
/// While no answer comes, the transaction is repeated. Nobody else uses the name of the new znode, so
/// at most one of the transactions is applied.
async fn replace_znode(
    live: &LiveSession,
    old: &str,
    operations: &[Operation],
) -> Result<(), Error> {
    let server = live.server();
    let server = server.map_err(|error| Error::at(old, live.id, error))?;
    let mut backoff = Backoff::default();
    loop {
        match server.transact(operations).await {
            Ok(_) => return Ok(()),
            Err(failure) if failure.error.is_unknown() => backoff.wait().await,
            // The answer to an earlier transaction was lost.
            Err(TransactionError {
                operation: Some(0),
                error,
            }) if error.is(Refusal::NodeExists) => return Ok(()),
            // The old znode is deleted, or the directory with it.
            Err(failure) if failure.error.is(Refusal::NoNode) => {
                return Err(Error::lost(old, live.id, LossReason::Deleted));
            }
            Err(failure) if failure.error.is(Refusal::BadVersion) => {
                return Err(Error::lost(old, live.id, LossReason::Written));
            }
            Err(failure) => return Err(Error::at_transaction(old, live.id, failure, operations)),
        }
    }
}

impl Grant {
    /// The directory and the contender, if the rule allows the replacement.
    fn replaceable(&self, from: &str) -> Result<(&NodePath, Contender), InvalidInput> {
        let path = self.znode.path();
        let refuse = |problem: String| Err(InvalidInput::new("hold", path, problem));
        let contender = Contender::parse(last_segment(path), |label| label == from);
        let (Some(directory), Some(contender)) = (self.znode.directory(), contender) else {
            return refuse(format!("does not have the label {from:?}"));
        };
        let rule = self.terms.rule.as_ref();
        if rule.is_some_and(|rule| !rule.may_be_replaced(from)) {
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
