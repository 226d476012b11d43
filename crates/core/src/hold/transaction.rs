//! Guarded writes: writes that the server refuses once the hold has gone.

use crate::error::Error;
use crate::hold::view::HoldView;
use crate::hold_state::LossReason;
use crate::server::acl::open_acl;
use crate::server::checks::check_size;
use crate::server::ensemble::{CreateMode, Operation, Outcome};
use crate::server::error::{Refusal, ServerError};

/// Writes to ZooKeeper on condition that a hold's znode still stands.
///
/// The condition and the writes are one transaction: the server does all of it or nothing. So a
/// holder that was paused, cut off or expired cannot write any more, whatever it believes.
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
    /// How many of the operations are checks of the holder's own.
    checks: usize,
    operations: Vec<Operation>,
}

impl HoldView {
    /// Writes to ZooKeeper on condition that the hold's znode still stands, in one transaction:
    /// the server itself refuses a holder that has lost its hold.
    ///
    /// See [`GuardedTransaction`] for an example.
    pub fn transaction(&self) -> GuardedTransaction {
        GuardedTransaction::new(self.clone())
    }
}

impl GuardedTransaction {
    fn new(hold: HoldView) -> GuardedTransaction {
        let operations = hold.node().checks();
        GuardedTransaction {
            hold,
            checks: operations.len(),
            operations,
        }
    }

    /// Creates a znode that anyone may do anything with. With a sequential mode the server appends
    /// a number to the path. For another access control list see
    /// [`operation`](Self::operation).
    ///
    /// If the znode is there already, nothing of the transaction is done:
    /// [`Error::Refused`] with [`Refusal::NodeExists`].
    pub fn create(self, path: &str, data: &[u8], mode: CreateMode) -> GuardedTransaction {
        let path = path.to_owned();
        self.operation(Operation::Create {
            path,
            data: data.to_owned(),
            mode,
            acl: open_acl(),
        })
    }

    /// Replaces a znode's data, whatever its version. To demand a version see
    /// [`operation`](Self::operation).
    pub fn set_data(self, path: &str, data: &[u8]) -> GuardedTransaction {
        let path = path.to_owned();
        self.operation(Operation::SetData {
            path,
            data: data.to_owned(),
            version: None,
        })
    }

    /// Deletes a znode, whatever its version. To demand a version see
    /// [`operation`](Self::operation).
    pub fn delete(self, path: &str) -> GuardedTransaction {
        self.operation(Operation::Delete {
            path: path.to_owned(),
            version: None,
        })
    }

    /// Demands that another znode is there. To demand a version see
    /// [`operation`](Self::operation).
    pub fn check(self, path: &str) -> GuardedTransaction {
        self.operation(Operation::Check {
            path: path.to_owned(),
            version: None,
        })
    }

    /// Adds any operation, for example a write of data that must be of a version.
    ///
    /// ```
    /// use zookeeper_recipes_core::{Error, Hold, Operation};
    ///
    /// async fn replace(hold: &Hold, report: &[u8], version: i32) -> Result<(), Error> {
    ///     let write = Operation::SetData {
    ///         path: "/reports/today".to_owned(),
    ///         data: report.to_owned(),
    ///         version: Some(version),
    ///     };
    ///     hold.transaction().operation(write).commit().await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn operation(mut self, operation: Operation) -> GuardedTransaction {
        self.operations.push(operation);
        self
    }

    /// Sends the transaction: one request. Returns what each operation did, in their order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when it is longer than 1,000,000 bytes: nothing was sent.
    /// [`Error::Lost`] when the hold has been let go of or its znode stands no more,
    /// [`Error::Refused`] when the server refused an operation (with that one's path),
    /// [`Error::SessionOver`] when the session is over: nothing was written.
    /// [`Error::OutcomeUnknown`] when no answer came: all of it was written, or nothing.
    ///
    /// # Cancel safety
    ///
    /// Once polled, the transaction has been sent: dropped then, its outcome is unknown.
    pub async fn commit(self) -> Result<Vec<Outcome>, Error> {
        let guard = self.hold.node_path();
        let id = self.hold.session_id();
        let sizes = self.operations.iter().map(operation_size);
        check_size("transaction", sizes.sum())?;
        // The znode's name may be another holder's by now.
        if let Some(reason) = self.hold.end() {
            return Err(self.hold.lost_by(reason));
        }
        let live = &self.hold.standing().live;
        let server = live.server().map_err(|error| Error::at(guard, id, error))?;
        let commit = async {
            let done = server.transact(&self.operations).await;
            let mut outcomes =
                done.map_err(|failure| match (failure.operation, failure.error) {
                    (Some(index), ServerError::Refused(Refusal::NoNode)) if index < self.checks => {
                        self.hold.lost_by(LossReason::Deleted)
                    }
                    (operation, error) => {
                        let path = operation
                            .and_then(|index| self.operations.get(index))
                            .map_or(guard, operation_path);
                        Error::at(path, id, error)
                    }
                })?;
            outcomes.drain(..self.checks.min(outcomes.len()));
            Ok(outcomes)
        };
        live.during(guard, commit).await
    }
}

fn operation_path(operation: &Operation) -> &str {
    match operation {
        Operation::Check { path, .. }
        | Operation::Create { path, .. }
        | Operation::SetData { path, .. }
        | Operation::Delete { path, .. } => path,
    }
}

/// What an operation takes in a request, its list of access rights left out.
fn operation_size(operation: &Operation) -> usize {
    const HEAD: usize = 16;
    let data = match operation {
        Operation::Create { data, .. } | Operation::SetData { data, .. } => data.len(),
        Operation::Check { .. } | Operation::Delete { .. } => 0,
    };
    HEAD + operation_path(operation).len() + data
}
