//! What the ensemble has committed, as data for a checker.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::{SessionEnd, SessionId};

/// One change that the ensemble has committed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_simulation::{Change, Simulation};
///
/// let simulation = Simulation::default();
/// let session = simulation.process("worker").connect().await?;
///
/// let opened = Change::SessionOpened { session: session.id };
/// assert_eq!(simulation.history()[0].change, opened);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The transaction. Changes of one transaction have the same.
    pub zxid: i64,
    /// When it was committed, by the simulation's clock. No server shows it before.
    pub at: Duration,
    /// The session that asked for it. `None` if a server or the administrator did.
    pub session: Option<SessionId>,
    /// The change.
    pub change: Change,
}

/// A change that a transaction has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A znode was created.
    Created {
        /// Its path.
        path: String,
        /// The session whose end deletes it, if it is ephemeral.
        ephemeral_owner: Option<SessionId>,
        /// Its data.
        data: Vec<u8>,
    },
    /// A znode's data was set.
    DataSet {
        /// Its path.
        path: String,
        /// The new data.
        data: Vec<u8>,
    },
    /// A znode was deleted.
    Deleted {
        /// Its path.
        path: String,
    },
    /// A session was opened.
    SessionOpened {
        /// The session's id.
        session: SessionId,
    },
    /// The servers have [come back with other data](crate::Faults::restore): the history starts over.
    ///
    /// Nothing that was committed before counts. Transactions that were committed before may come
    /// again, with other changes.
    DataReplaced {
        /// What leads to the data: each of its sessions is opened, and each of its znodes is created,
        /// by the transaction that created it then. If another one has written it since, that write
        /// follows, with the same data.
        data: Vec<Committed>,
    },
    /// A session came to its end. The deletions of its ephemeral znodes follow, in the same
    /// transaction.
    SessionEnded {
        /// The session's id.
        session: SessionId,
        /// True if the server expired it or the client closed it.
        end: SessionEnd,
    },
}
