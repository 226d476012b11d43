//! Guarded writes: the server refuses them once the holder's znode is deleted.

use std::pin::pin;

use crate::error::Error;
use crate::hold::view::HoldView;
use crate::hold_state::{HoldState, LossReason};
use crate::invalid_input::InvalidInput;
use crate::server::acl::open_acl;
use crate::server::ensemble::{CreateMode, Operation, Outcome, TransactionError};
use crate::server::error::{Refusal, ServerError};
use crate::session::writes::AboutToSend;

/// Writes to ZooKeeper that the server applies only if the holder's znode stands.
///
/// The condition and the writes are one transaction: the server applies all of it or nothing. So a
/// holder that was paused, cut off or expired cannot write, even if it still believes that it
/// holds.
///
/// Tasks of one process can hand a hold on, with its znode
/// ([`QueueOptions::local`](crate::QueueOptions::local)). No write of an earlier hold lands once the
/// next task holds: a hold with a write that has no answer is not handed on, but released.
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
    /// Begins writes that the server applies only if the holder's znode stands.
    ///
    /// The server itself refuses the writes of a holder that has lost its hold.
    ///
    /// See [`GuardedTransaction`] for an example.
    pub fn transaction(&self) -> GuardedTransaction {
        GuardedTransaction::new(self.clone())
    }
}

impl GuardedTransaction {
    fn new(hold: HoldView) -> GuardedTransaction {
        let operations = vec![hold.node().check()];
        GuardedTransaction { hold, operations }
    }

    /// Creates a znode that everyone may read, write and delete.
    ///
    /// If the mode is sequential, the server appends a number to the path. For another access
    /// control list use [`operation`](Self::operation).
    ///
    /// If the znode exists, nothing of the transaction is done: [`Error::Refused`] with
    /// [`Refusal::NodeExists`].
    pub fn create(self, path: &str, data: &[u8], mode: CreateMode) -> GuardedTransaction {
        let path = path.to_owned();
        self.operation(Operation::Create {
            path,
            data: data.to_owned(),
            mode,
            acl: open_acl(),
        })
    }

    /// Replaces a znode's data, whatever its version.
    ///
    /// To demand a version use [`operation`](Self::operation).
    pub fn set_data(self, path: &str, data: &[u8]) -> GuardedTransaction {
        let path = path.to_owned();
        self.operation(Operation::SetData {
            path,
            data: data.to_owned(),
            version: None,
        })
    }

    /// Deletes a znode, whatever its version.
    ///
    /// To demand a version use [`operation`](Self::operation).
    pub fn delete(self, path: &str) -> GuardedTransaction {
        self.operation(Operation::Delete {
            path: path.to_owned(),
            version: None,
        })
    }

    /// Demands that another znode exists.
    ///
    /// To demand a version use [`operation`](Self::operation).
    pub fn check(self, path: &str) -> GuardedTransaction {
        self.operation(Operation::Check {
            path: path.to_owned(),
            version: None,
        })
    }

    /// Adds any operation, for example a write to a znode of a certain version.
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
    ///   the holder's own znode. Nothing was sent.
    /// * [`Error::Lost`] if the hold has ended, or its znode is deleted. Nothing was written.
    /// * [`Error::Refused`] if the server refused an operation, with that operation's path. Nothing
    ///   was written.
    /// * [`Error::SessionOver`] if the session is over. Nothing was written.
    /// * [`Error::OutcomeUnknown`] if no answer came. All of it was written, or nothing.
    ///
    /// # Cancel safety
    ///
    /// Once the future is polled, the transaction is sent. If the future is dropped then, the
    /// outcome is unknown.
    pub async fn commit(self) -> Result<Vec<Outcome>, Error> {
        let path = self.hold.node_path();
        let id = self.hold.session_id();
        self.check_own_path()?;
        let about_to_send = self.about_to_send();
        if let Some(reason) = self.ended() {
            return Err(self.hold.lost_by(reason));
        }
        let live = &self.hold.standing().live;
        let server = live.server().map_err(|error| Error::at(path, id, error))?;
        let unanswered = self.hold.unanswered();
        if !unanswered.begin() {
            return Err(self.hold.lost_by(LossReason::Released));
        }
        let done = server.transact(&self.operations);
        drop(about_to_send);
        let commit = async {
            let done = done.await;
            if is_answer(&done) {
                unanswered.answered();
            }
            let mut outcomes =
                done.map_err(|failure| match (failure.operation, failure.error) {
                    (Some(0), ServerError::Refused(Refusal::NoNode)) => {
                        self.hold.lost_by(LossReason::Deleted)
                    }
                    (operation, error) => {
                        let path = operation
                            .and_then(|index| self.operations.get(index))
                            .map_or(path, operation_path);
                        Error::at(path, id, error)
                    }
                })?;
            outcomes.drain(..outcomes.len().min(1));
            Ok(outcomes)
        };
        live.during(path, pin!(commit)).await
    }

    /// Keeps the session from deleting a znode of a shared name before the transaction is sent.
    fn about_to_send(&self) -> Option<AboutToSend> {
        let node = self.hold.node();
        let live = &self.hold.standing().live;
        let begin = || live.own_znodes().writes().begin(node.path());
        node.shares_its_name().then(begin)
    }

    /// The reason not to send the transaction: the znode's name may belong to another holder by now.
    ///
    /// If nobody else uses the name, the server refuses the writes of a hold that is lost.
    fn ended(&self) -> Option<LossReason> {
        match self.hold.state() {
            HoldState::Lost(reason) if self.hold.node().shares_its_name() => Some(reason),
            _ => self.hold.end(),
        }
    }

    /// Refuses a write to the holder's own znode: waiters take it for a release.
    fn check_own_path(&self) -> Result<(), InvalidInput> {
        let own = self.hold.node_path();
        let writes_own = |operation: &Operation| {
            operation_path(operation) == own && !matches!(operation, Operation::Check { .. })
        };
        match self.operations.iter().any(writes_own) {
            true => Err(InvalidInput::new(
                "write",
                own,
                "is to the holder's own znode, and would let the next contender hold",
            )),
            false => Ok(()),
        }
    }
}

/// True if the server has applied or refused the transaction, so it does neither later.
fn is_answer(done: &Result<Vec<Outcome>, TransactionError>) -> bool {
    match done {
        Ok(_) => true,
        Err(failure) => matches!(failure.error, ServerError::Refused(_)),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use futures_util::future::FutureExt;
    use tokio::sync::watch;

    use super::*;
    use crate::hold::fate::FateTeller;
    use crate::hold::own_znode::OwnNode;
    use crate::hold::standing::Standing;
    use crate::hold_state::FencingToken;
    use crate::session::leave::delete_all;
    use crate::session::live::LiveSession;
    use crate::session::scripted::Scripted;

    /// A znode of a shared name, the view of its hold, and the sender of the hold's end.
    fn hold(live: &Arc<LiveSession>) -> (OwnNode, HoldView, watch::Sender<Option<LossReason>>) {
        let node = OwnNode::doubtful(live, "/lock", b"").certain(1);
        let (_, fate) = FateTeller::new();
        let standing = Standing {
            live: live.clone(),
            lapses: 0,
            fate,
        };
        let (ended, end) = watch::channel(None);
        let (token, lost_at) = (FencingToken::from(1), Arc::default());
        let view = HoldView::new(standing, node.clone(), token, end, lost_at);
        (node, view, ended)
    }

    /// The thread of the write stands still before the sending, while another thread releases.
    #[tokio::test(start_paused = true)]
    async fn release_does_not_overtake_a_write_that_is_about_to_be_sent() {
        let (live, script) = Scripted::open(Duration::ZERO);
        let (node, view, ended) = hold(&live);
        let late = (node.clone(), live.clone());
        script.at_transaction(move || {
            ended.send_replace(Some(LossReason::Released));
            let release = late.0.remove(&late.1).now_or_never();
            assert!(release.is_none(), "it waits");
        });
        let write = view.transaction().set_data("/data", b"late").commit();
        write.await.expect("it was held at the look");
        assert_eq!(script.deletions(), [""; 0]);
        node.remove(&live).await.expect("the write is sent");
        assert_eq!(script.deletions(), ["/lock"]);
    }

    /// The same, while the session is closed.
    #[tokio::test(start_paused = true)]
    async fn close_does_not_overtake_a_write_that_is_about_to_be_sent() {
        let (live, script) = Scripted::open(Duration::ZERO);
        let (_node, view, _ended) = hold(&live);
        script.show(1, 1);
        let (late, server) = (live.clone(), script.clone());
        script.at_transaction(move || {
            let own = late.own_znodes();
            let close = delete_all(own.writes(), &*server, &own.all()).now_or_never();
            assert!(close.is_none(), "it waits");
            assert_eq!(server.transactions(), 0);
        });
        let write = view.transaction().set_data("/data", b"late").commit();
        write.await.expect("it was held at the look");
        let own = live.own_znodes();
        delete_all(own.writes(), &*script, &own.all()).await;
        assert_eq!(script.deletions(), ["/lock"]);
    }
}
