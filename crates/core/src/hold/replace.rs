//! The replacement of a holder's znode by one of another kind.

use std::pin::pin;

use crate::contender::Contender;
use crate::error::Error;
use crate::hold::grant::{Grant, Terms};
use crate::hold::own_znode::{ContenderName, ZnodeOwner};
use crate::hold::{Held, Hold, NOT_ENDED, how_ended};
use crate::hold_state::{Ended, HoldState, LossReason};
use crate::invalid_input::InvalidInput;
use crate::live::live_session::LiveSession;
use crate::path::{NodePath, last_segment};
use crate::retry::Backoff;
use crate::server::ensemble::{Acl, CreateMode, Operation, TransactionError};
use crate::server::error::{Refusal, ServerError};

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
        mut self,
        from: &str,
        to: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<Hold, Error> {
        let (held, ended) = self.end().expect(NOT_ENDED);
        let old = &self.view.grant;
        if let Ended::Lost(_) = ended {
            return Err(self.view.ended_error(ended));
        }
        let replaced = replaced(old, &held, from, to, (data, acl)).await;
        let owner = replaced.inspect_err(|error| old.report(how_ended(error)))?;
        let rule = old.rule.clone();
        let recipe = rule.as_ref().map_or("queue", |rule| rule.recipe(to));
        let record = old.take_record().expect(NOT_ENDED);
        record.released(old.held_for(), false);
        // The hold continues, so a lapse since its grant counts. The lease need not grant again.
        let terms = Terms {
            token: old.token,
            epoch: old.epoch,
            record: record.replaced(recipe, old.token),
            deadline: old.deadline,
            rule,
        };
        Ok(Hold::begin(owner, &held.open, terms, None))
    }
}

/// Replaces the znode of a grant, and returns the owner of the new znode.
async fn replaced(
    old: &Grant,
    held: &Held,
    from: &str,
    to: &str,
    (data, acl): (&[u8], &[Acl]),
) -> Result<ZnodeOwner, Error> {
    let (live, path) = (old.live(), old.znode.path());
    let (directory, contender) = old.replaceable(from)?;
    let identity = live.identity();
    let new = format!("{directory}/{}{}", identity.name(to), contender.sequence());
    let name = ContenderName::known(directory, identity, new.clone());
    // If this future is dropped from here on, both znodes must be deleted.
    let znode = old.znode.znodes().contender(name.clone());
    let owner = ZnodeOwner::new(&held.owner.session_use, znode);
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
    tokio::select! {
        biased;
        replaced = live.until_over(path, replacing) => replaced?,
        reason = old.until_lapsed_or_over() => return Err(match reason {
            LossReason::Session(end) => Error::at(path, live.id, ServerError::SessionOver(end)),
            reason => Error::lost(path, live.id, reason),
        }),
    }
    if let HoldState::Lost(reason) = live.hold_state(old.epoch) {
        return Err(Error::lost(path, live.id, reason));
    }
    // The transaction has deleted the old znode.
    old.znode.note_gone();
    old.znode.pass_turn();
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
        let rule = self.rule.as_ref();
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
