//! The assignment, as one worker has it.

use std::sync::Arc;

use zookeeper_recipes_core::{Error, InvalidInput, NodePath, Session, SessionEnd, SessionState};
use zookeeper_recipes_group::{Group, GroupOptions};

use crate::layout::Layout;
use crate::options::AssignmentOptions;
use crate::partitions::Partitions;

/// The longest id of a worker, in bytes.
const LONGEST_ID: usize = 200;

/// Partitions that are assigned to workers, one owner at a time.
///
/// Each worker makes an `Assignment` with an id of its own, and [runs](Self::run) it. The
/// [crate](crate#how-it-works) says how it works, and has an example.
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
#[derive(Clone, Debug)]
pub struct Assignment {
    pub(crate) session: Session,
    pub(crate) layout: Layout,
    pub(crate) group: Group,
    pub(crate) partitions: Partitions,
    pub(crate) id: Arc<str>,
    pub(crate) options: AssignmentOptions,
}

impl Assignment {
    /// A worker of the assignment at `path`, with the default options. The call sends nothing.
    ///
    /// `worker` is the id of this worker. It must be unique among the processes that run, and should
    /// be the same after a restart. If other partitions are recorded at `path`, the recorded ones
    /// count, and an event says so:
    /// [`set_partitions`](crate::AssignmentOperator::set_partitions) replaces them.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`](crate::NodePath), there is a mistake in
    /// the [partitions](Partitions), or the id is no segment of a path, has a `#`, or is longer than
    /// 200 bytes.
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
        let group = GroupOptions::new().acl(options.acl.clone());
        group.check_znode(session, &member, &[])?;
        Ok(Assignment {
            group: Group::with_options(session, layout.workers.as_str(), group)?,
            session: session.clone(),
            layout,
            partitions,
            id: id.into(),
            options,
        })
    }

    /// The error of a worker whose session has ended for good.
    pub(crate) fn no_session(&self, path: &NodePath) -> Error {
        let reason = match self.session.state() {
            SessionState::Ended(reason) => reason,
            // The runtime of the session shuts down.
            _ => SessionEnd::Closed,
        };
        Error::NoSession {
            path: path.to_string(),
            reason,
        }
    }
}
