//! What an operator asks of an assignment, and what an operator sees.

use std::time::Duration;

use tokio::sync::watch;
use zookeeper_recipes_core::{Acl, AuthId, Error, InvalidInput, Permission, Session};

use crate::children::ChildrenOf;
use crate::kept::{keep, known};
use crate::layout::{FREEZE, Layout};
use crate::owned::{Routing, owners};
use crate::partitions::Partitions;
use crate::recorded;

/// A program that sees and directs the workers of an assignment, and need not be one.
///
/// What follows holds for each method that asks the servers:
///
/// * Errors: [`Error::Refused`], for example without a permission, and [`Error::NoSession`]. Some
///   methods name more.
/// * Cancel safety: if the future of a read is dropped, it leaves nothing behind. If another one is
///   dropped, the order is given or not, or all of the record is replaced or nothing. It does not
///   happen after a later order, or after a later record.
/// * Session loss: the call continues in the next session.
/// * Costs: see [`docs::limits`](crate::docs::limits#costs).
///
/// # Orders
///
/// Each order is a znode, and counts until it is taken back. The leader follows it as soon as it
/// sees it. An order never gives a partition two owners.
///
/// | order | znode below `orders` | what the leader does |
/// |---|---|---|
/// | [`drain`](Self::drain) | `drain/<worker>` | moves all partitions of the worker to others, and gives it none |
/// | [`pin`](Self::pin) | `move/<partition>` | moves the partition to the worker, and leaves it there while the worker is there and not drained |
/// | [`freeze`](Self::freeze) | `freeze` | moves no partition of a worker that is there. The partitions of other workers get an owner |
///
/// The order that a call gives last counts. A call repeats a request that had no answer, and the
/// servers refuse the first request once any order was written after its read. So an order that was
/// taken back does not come back. An order that a person writes with a shell is not guarded, and
/// none is if somebody deletes `orders`.
///
/// The error is [`Error::InvalidInput`] if the name of the worker or the partition is no segment of
/// a path, or no partitions are recorded at the path, so that it is no assignment.
///
/// # Example
///
/// ```
/// use zookeeper_recipes_assignment::{AssignmentOperator, Partitions, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let operator = AssignmentOperator::new(&session, "/app/queues")?;
/// operator.set_partitions(Partitions::numbered(64)).await?;
/// operator.drain("worker-7").await?;
/// operator.freeze().await?;
/// assert!(operator.status().await?.frozen);
///
/// let mut status = operator.watch_status().await?;
/// operator.thaw().await?;
/// operator.undrain("worker-7").await?;
/// status.wait_for(|status| !status.frozen).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AssignmentOperator {
    pub(crate) session: Session,
    pub(crate) layout: Layout,
    pub(crate) acl: Vec<Acl>,
}

impl AssignmentOperator {
    /// An operator of the assignment at `path`. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`](crate::NodePath).
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
    ) -> Result<AssignmentOperator, InvalidInput> {
        Ok(AssignmentOperator {
            session: session.clone(),
            layout: Layout::new(path.as_ref())?,
            acl: vec![Acl::new(Permission::ALL, AuthId::anyone())],
        })
    }

    /// The access control list of the orders, of the recorded partitions, and of directories that
    /// are missing.
    #[must_use]
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> AssignmentOperator {
        self.acl = acl.into();
        self
    }

    /// Moves all partitions of a worker to others, and gives it none: an [order](Self#orders).
    ///
    /// The worker need not be there. It keeps its partitions if all workers that are there are
    /// drained.
    pub async fn drain(&self, worker: &str) -> Result<(), Error> {
        self.order(&self.layout.drains, worker, Some(b"")).await
    }

    /// Takes [`drain`](Self::drain) back: an [order](Self#orders).
    pub async fn undrain(&self, worker: &str) -> Result<(), Error> {
        self.order(&self.layout.drains, worker, None).await
    }

    /// Moves a partition to a worker, and leaves it there: an [order](Self#orders).
    ///
    /// It counts while the worker is there and not drained. The partition and the worker need not be
    /// there.
    pub async fn pin(&self, partition: &str, worker: &str) -> Result<(), Error> {
        self.layout.workers.join(worker)?;
        let pin = Some(worker.as_bytes());
        self.order(&self.layout.pins, partition, pin).await
    }

    /// Takes [`pin`](Self::pin) back: an [order](Self#orders).
    ///
    /// The partition stays where it is, as long as that is balanced.
    pub async fn unpin(&self, partition: &str) -> Result<(), Error> {
        self.order(&self.layout.pins, partition, None).await
    }

    /// Moves no partition of a worker that is there, until [`thaw`](Self::thaw): an
    /// [order](Self#orders).
    ///
    /// A partition whose worker leaves or dies gets another one all the same. A move that has begun
    /// comes to its end.
    pub async fn freeze(&self) -> Result<(), Error> {
        self.order(&self.layout.orders, FREEZE, Some(b"")).await
    }

    /// Takes [`freeze`](Self::freeze) back: an [order](Self#orders).
    pub async fn thaw(&self) -> Result<(), Error> {
        self.order(&self.layout.orders, FREEZE, None).await
    }

    /// Records partitions, also in place of others. The workers need not run.
    ///
    /// The leader plans the new partitions. The workers drain and release those that are not
    /// recorded any more. A partition that remains stays with its owner, unless the balance asks for
    /// a move.
    ///
    /// # Errors
    ///
    /// Also [`Error::InvalidInput`] if there is a mistake in the partitions, or the record is of
    /// another version.
    pub async fn set_partitions(&self, partitions: Partitions) -> Result<(), Error> {
        partitions.check()?;
        let path = &self.layout.partitions;
        let recorded = recorded::record(&self.session, path, &partitions, &self.acl, true);
        recorded.await.map(drop)
    }

    /// Watches who owns each partition.
    ///
    /// Returns when a server has answered. A task keeps the value up to date, until the last receiver
    /// is dropped or the session is closed. If no server answers, the value stays as it was.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn routing(&self) -> Result<watch::Receiver<Routing>, Error> {
        let (session, directory) = (&self.session, &self.layout.owned);
        let published = ChildrenOf::new(directory);
        let kept = keep(session, published, Duration::ZERO, |it| owners(&it));
        known(session, directory, kept).await
    }
}
