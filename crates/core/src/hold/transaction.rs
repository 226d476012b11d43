//! Guarded writes: the server refuses them once the holder's znode is deleted.

use std::pin::pin;
use std::sync::Arc;

use crate::error::Error;
use crate::hold::own_znode::is_closed_to_others;
use crate::hold::view::HoldView;
use crate::hold_state::LossReason;
use crate::invalid_input::InvalidInput;
use crate::server::ensemble::{CreateMode, Operation, Outcome, TransactionError};
use crate::server::error::{Refusal, ServerError};
use crate::server::scope::open_acl;

/// Writes to ZooKeeper that the server applies only if the holder's znode exists.
///
/// The condition and the writes are one transaction: the server applies all of it or nothing. So a
/// holder that was paused, cut off or expired cannot write, even if it still believes that it
/// holds.
///
/// ```
/// use zookeeper_recipes_core::{Error, Hold};
///
/// async fn store(hold: &Hold, report: &[u8]) -> Result<(), Error> {
///     hold.transaction().set_data("/reports/today", report).commit().await?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "nothing is sent before it is committed"]
pub struct GuardedTransaction {
    hold: HoldView,
    /// The check of the holder's znode, and the operations of the caller.
    operations: Vec<Operation>,
}

impl HoldView {
    /// Begins writes that the server applies only if the holder's znode exists.
    ///
    /// Nothing is sent before the commit. See [`GuardedTransaction`] for an example.
    pub fn transaction(&self) -> GuardedTransaction {
        GuardedTransaction {
            hold: self.clone(),
            operations: vec![Operation::check(self.node_path())],
        }
    }
}

impl GuardedTransaction {
    /// Creates a znode that everyone may read, write and delete.
    ///
    /// If the mode is sequential, the server appends a number to the path.
    pub fn create(self, path: &str, data: &[u8], mode: CreateMode) -> GuardedTransaction {
        self.operation(Operation::create(path, data, mode, open_acl()))
    }

    /// Replaces a znode's data, whatever its version.
    pub fn set_data(self, path: &str, data: &[u8]) -> GuardedTransaction {
        self.operation(Operation::set_data(path, data))
    }

    /// Deletes a znode, whatever its version.
    pub fn delete(self, path: &str) -> GuardedTransaction {
        self.operation(Operation::delete(path))
    }

    /// Demands that another znode exists.
    pub fn check(self, path: &str) -> GuardedTransaction {
        self.operation(Operation::check(path))
    }

    /// Adds any operation: one that demands a version, or a create with an access control list.
    pub fn operation(mut self, operation: Operation) -> GuardedTransaction {
        self.operations.push(operation);
        self
    }

    /// Sends the transaction, and returns what each operation did, in order.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a transaction | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if the transaction is longer than the servers accept
    ///   ([`ConnectOptions::jute_maxbuffer`](crate::ConnectOptions::jute_maxbuffer)), or writes to
    ///   the holder's own znode or to a contender's that is closed to other processes, or the hold is
    ///   one of a [`NamedZnode`](crate::NamedZnode), whose path does not distinguish its holder from
    ///   the next. Nothing was sent.
    /// * [`Error::Lost`] if the hold is lost, or its znode is deleted. Nothing was written.
    /// * [`Error::Released`] if the owner has released the hold. Nothing was written.
    /// * [`Error::Refused`] if the server refused an operation, with that operation's path, or with
    ///   the path of the znode that does not grant the permission. Nothing was written.
    /// * [`Error::SessionOver`] if the session was over before. Nothing was sent.
    /// * [`Error::OutcomeUnknown`] if no answer came, for example because the session has ended
    ///   meanwhile. All of it was written, or nothing.
    ///
    /// # Cancel safety
    ///
    /// Once the future is polled, the transaction is sent. If the future is dropped then, the
    /// outcome is unknown.
    pub async fn commit(self) -> Result<Vec<Outcome>, Error> {
        let path = self.hold.node_path();
        let id = self.hold.session_id();
        self.refuse_unsafe()?;
        let grant = &self.hold.grant;
        let live = grant.live();
        let server = live.server().map_err(|error| Error::at(path, id, error))?;
        if let Some(ended) = grant.ended() {
            return Err(self.hold.ended_error(ended));
        }
        let ephemerals = &grant.znode.znodes().ephemerals;
        let created = ephemerals.begin(&self.operations);
        let created = created.map_err(|error| Error::at(path, id, error))?;
        let done = server.transact(&self.operations);
        let commit = async {
            let done = done.await;
            ephemerals.answered(&self.operations, created, &done);
            let mut outcomes = done.map_err(|failure| match &failure {
                TransactionError {
                    operation: Some(0),
                    error,
                } if error.is(Refusal::NoNode) => {
                    self.hold.ended_error(grant.lose(LossReason::Deleted))
                }
                _ => Error::at_transaction(path, id, failure, &self.operations),
            })?;
            outcomes.drain(..outcomes.len().min(1));
            Ok(outcomes)
        };
        let done = live.until_over(path, pin!(commit)).await;
        done.map_err(|error| match error {
            // It was sent, and the server may have applied it before the session ended.
            Error::SessionOver { reason, .. } => Error::OutcomeUnknown {
                path: path.to_owned(),
                session: id,
                cause: Arc::new(ServerError::SessionOver(reason)),
            },
            error => error,
        })
    }

    /// Refuses a write that the server could not refuse after the hold.
    ///
    /// It also refuses a write that waiters take for a release: to the holder's own znode, and to
    /// the data of another hold of this process.
    fn refuse_unsafe(&self) -> Result<(), InvalidInput> {
        let own = self.hold.node_path();
        let refuse = |path: &str, problem| Err(InvalidInput::new("guarded write", path, problem));
        if self.hold.grant.znode.is_named() {
            return refuse(
                own,
                "is not possible: other holders have a znode of the same name",
            );
        }
        let ends_a_hold = |operation: &&Operation| match operation {
            Operation::Check(_) => false,
            Operation::SetData(set) => set.path == own || is_closed_to_others(&set.path),
            _ => operation.path() == own,
        };
        match self.operations.iter().find(ends_a_hold) {
            Some(write) => refuse(
                write.path(),
                "is to a contender's znode: the waiters behind it take the write for a release",
            ),
            None => Ok(()),
        }
    }
}
