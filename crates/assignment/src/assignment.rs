//! The assignment, as one worker has it.

use std::sync::Arc;

use tokio::sync::watch;
use zookeeper_recipes_core::{Error, InvalidInput, NodePath, Session};
use zookeeper_recipes_group::{Group, GroupOptions};

use crate::events::Reporter;
use crate::layout::{Layout, create_directory};
use crate::member::MemberData;
use crate::options::AssignmentOptions;
use crate::partitions::Partitions;
use crate::recorded;
use crate::routing::{Routing, watch_routing};

/// The longest id of a worker, in bytes.
const LONGEST_ID: usize = 200;

/// Partitions that are assigned to workers, one owner at a time.
///
/// Each worker makes an `Assignment` with an id of its own, and [runs](Self::run) it. Safety rests on
/// one [`ExclusiveLock`](zookeeper_recipes_lock::ExclusiveLock) for each partition. The plan says
/// which worker should acquire which lock. So an old plan, two planners or no plan can make
/// partitions move or wait, and never give one two owners.
///
/// # Znodes
///
/// | below the path | what it is |
/// |---|---|
/// | `partitions` | the partitions, on which all workers agree |
/// | `workers/<worker>` | ephemeral: a [`Group`] of the workers, with their addresses |
/// | `leader` | the election of the worker that plans |
/// | `plan/<worker>` | what the worker should own and give away |
/// | `owned/<worker>` | ephemeral: what the worker owns, with the fencing tokens |
/// | `locks/<partition>` | the lock of the partition |
/// | `orders` | what operators ask for |
///
/// A plan, and what a worker owns, is in pieces of about 4 KiB: `<worker>`, `<worker>#1` and so on. A
/// change writes, and its readers read, only the pieces that it changes.
///
/// # Limits
///
/// | | limit |
/// |---|---|
/// | partitions | 100,000. [`Partitions`] with more are refused. |
/// | locks that a worker enters at once | 64, with a create and a list each: at most 128 requests are outstanding. A worker that waits for a predecessor has entered. |
/// | partitions with an owner that move at once | 32, or a hundredth of all if that is more: [`AssignmentOptions::max_moves`] |
///
/// # Memory
///
/// | | of each worker |
/// |---|---|
/// | the worker: its session, the group, the election | 78 KiB |
/// | each partition that the worker owns: its future, its lock, its hold and its loss watch | 7.5 KiB |
/// | each partition of the assignment, owned or not: its name, its weight and its zone | 0.15 KiB |
/// | the same, of the leader | 0.24 KiB |
///
/// `cargo xtask bench assignment` measured these with 10,000 partitions.
///
/// # Example
///
/// ```
/// use std::convert::Infallible;
/// use zookeeper_recipes_assignment::{Assignment, Partition, Partitions, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let queues = Partitions::numbered(4);
/// let assignment = Assignment::new(&session, "/app/queues", queues, "worker-7")?;
/// let mut routing = assignment.routing().await?;
///
/// // Until each partition is owned.
/// let shutdown = async move {
///     let all = routing.wait_for(|routing| routing.len() == 4).await;
///     assert_eq!(all.expect("open").owner("3").expect("owned").worker, "worker-7");
/// };
/// let work = async |owned: Partition| -> Result<(), Infallible> {
///     println!("partition {} with token {}", owned.id(), owned.fencing_token());
///     owned.draining().await;
///     Ok(())
/// };
/// assignment.run(shutdown, work).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Assignment {
    pub(crate) session: Session,
    pub(crate) layout: Layout,
    pub(crate) group: Group,
    pub(crate) partitions: Partitions,
    pub(crate) id: Arc<str>,
    pub(crate) options: AssignmentOptions,
    pub(crate) reporter: Reporter,
}

impl Assignment {
    /// A worker of the assignment at `path`, with the default options. The call sends nothing.
    ///
    /// `worker` is the id of this worker. It must be unique among the processes that run, and should
    /// be the same after a restart. If other partitions are recorded at `path`, the recorded ones
    /// count, and an event says so: [`set_partitions`](Self::set_partitions) replaces them.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], there is a mistake in the
    /// [partitions](Partitions), or the id is no segment of a path, has a `#`, or is longer than 200
    /// bytes.
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
        partitions: Partitions,
        worker: impl AsRef<str>,
    ) -> Result<Assignment, InvalidInput> {
        Assignment::with_options(session, path, partitions, worker, AssignmentOptions::new())
    }

    /// A worker of the assignment at `path`. The call sends nothing.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and [`InvalidInput`] if an option has a value that cannot work.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        partitions: Partitions,
        worker: impl AsRef<str>,
        options: AssignmentOptions,
    ) -> Result<Assignment, InvalidInput> {
        let (id, layout) = (worker.as_ref(), Layout::new(path.as_ref())?);
        let member = layout.workers.join(id)?;
        if id.contains('#') || id.len() > LONGEST_ID {
            let problem = format!("has a '#' in it, or is longer than {LONGEST_ID} bytes");
            return Err(InvalidInput::new("worker", id, problem));
        }
        partitions.check()?;
        options.check()?;
        session.check_znode(&member, &[], &options.acl, None)?;
        let group = GroupOptions::new().acl(options.acl.clone());
        let id: Arc<str> = Arc::from(id);
        let reporter = Reporter {
            path: layout.base.clone(),
            worker: id.clone(),
            name: options.name.clone(),
        };
        Ok(Assignment {
            group: Group::with_options(session, layout.workers.as_str(), group)?,
            session: session.clone(),
            layout,
            partitions,
            id,
            options,
            reporter,
        })
    }

    /// The id of this worker.
    pub fn worker(&self) -> &str {
        &self.id
    }

    /// The path of the assignment.
    pub fn path(&self) -> &NodePath {
        &self.layout.base
    }

    /// Watches who owns each partition, also without running as a worker.
    ///
    /// Returns when a server has answered. A task keeps the value up to date, until the last receiver
    /// is dropped or the session is closed. If no server answers, the value stays as it was.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the first value: a `sync`, the names, what each worker owns | 2, and 1 for each worker | 3 | 1, and 1 for each worker |
    /// | a worker comes or goes: the names | 1 more | 1 more | 0 |
    /// | a worker owns other partitions: a read for each 4 KiB that changed | 1 or more | 1 more | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// The task continues in the next session.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn routing(&self) -> Result<watch::Receiver<Routing>, Error> {
        watch_routing(&self.session, &self.layout.owned).await
    }

    /// Records other partitions in place of the recorded ones. The workers need not run.
    ///
    /// The leader plans the new partitions. The workers drain and release those that are not
    /// recorded any more. A partition that remains stays with its owner, unless the balance asks for
    /// a move. The partitions that this value was made with do not change.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read and a transaction | 2 | 2 | 0 |
    /// | a record longer than 32 KiB: its parts, and the deletion of the earlier ones | 2 more for each 32 KiB | 2 more | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if there is a mistake in the partitions, or the record is of another
    /// version. [`Error::Refused`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, all of the record is replaced, or nothing.
    ///
    /// # Session loss
    ///
    /// The call continues in the next session.
    pub async fn set_partitions(&self, partitions: Partitions) -> Result<(), Error> {
        partitions.check()?;
        let (path, acl) = (&self.layout.partitions, &self.options.acl);
        create_directory(&self.session, path, acl).await?;
        recorded::replace(&self.session, path, &partitions, acl).await
    }

    pub(crate) fn member(&self) -> MemberData {
        MemberData {
            address: self.options.address.clone(),
            capacity: self.options.capacity,
            zone: self.options.zone.clone(),
        }
    }
}
