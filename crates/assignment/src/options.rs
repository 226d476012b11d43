//! The options of an assignment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_recipes_core::{Acl, AuthId, InvalidInput, Permission};

use crate::names::problem_of_zone;

/// Work before a partition is owned.
#[derive(Clone)]
pub(crate) struct Warm(pub(crate) Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>);

/// The longest address of a worker, in bytes.
const LONGEST_ADDRESS: usize = 1000;

/// Options of an [`Assignment`](crate::Assignment).
///
/// `max_moves`, `move_within` and `grace` are those of the worker that leads. Give all workers the
/// same.
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_assignment::AssignmentOptions;
///
/// let options = AssignmentOptions::new()
///     .address("10.0.0.7:8080")
///     .max_moves(8)
///     .grace(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct AssignmentOptions {
    pub(crate) address: String,
    pub(crate) capacity: u32,
    pub(crate) zone: Option<String>,
    pub(crate) name: Arc<str>,
    pub(crate) acl: Vec<Acl>,
    pub(crate) max_moves: usize,
    pub(crate) grace: Duration,
    pub(crate) warm: Option<Warm>,
    pub(crate) move_within: Duration,
    pub(crate) drain_at_most: Duration,
}

impl AssignmentOptions {
    /// The defaults.
    ///
    /// | option | default |
    /// |---|---|
    /// | address | empty |
    /// | capacity | 1 |
    /// | zone | none |
    /// | name | none |
    /// | access control list | everyone may do everything |
    /// | max moves | 32, or a hundredth of the partitions if that is more |
    /// | grace | none |
    /// | warm | nothing |
    /// | move within | 60 s |
    /// | drain at most | 10 s |
    pub fn new() -> AssignmentOptions {
        AssignmentOptions {
            address: String::new(),
            capacity: 1,
            zone: None,
            name: Arc::default(),
            acl: vec![Acl::new(Permission::ALL, AuthId::anyone())],
            max_moves: usize::MAX,
            grace: Duration::ZERO,
            warm: None,
            move_within: Duration::from_secs(60),
            drain_at_most: Duration::from_secs(10),
        }
    }

    /// The address of the worker, to which other programs route requests. One line of text.
    pub fn address(mut self, address: impl Into<String>) -> AssignmentOptions {
        self.address = address.into();
        self
    }

    /// How much the worker takes in proportion to the other workers. It must not be zero.
    pub fn capacity(mut self, capacity: u32) -> AssignmentOptions {
        self.capacity = capacity;
        self
    }

    /// The zone that the worker is in. See [`Partitions::zone`](crate::Partitions::zone).
    pub fn zone(mut self, zone: impl Into<String>) -> AssignmentOptions {
        self.zone = Some(zone.into());
        self
    }

    /// The name of the recipe in events, and a label of its metrics.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> AssignmentOptions {
        self.name = name.into();
        self
    }

    /// The access control list of the created znodes. It must not be empty.
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> AssignmentOptions {
        self.acl = acl.into();
        self
    }

    /// The most partitions with an owner that may move at once. It must not be zero.
    ///
    /// The leader moves fewer at once if the servers are slow: see
    /// [`docs::moves`](crate::docs::moves). A partition without an owner gets one at once, and does
    /// not count.
    pub fn max_moves(mut self, moves: usize) -> AssignmentOptions {
        self.max_moves = moves;
        self
    }

    /// How long a worker that has vanished keeps its partitions. Nobody owns them meanwhile.
    ///
    /// A worker that starts again under the same id within this time owns the same partitions. The
    /// time begins when the leader notices the absence, and begins again under another leader.
    /// With `Duration::MAX` no other worker ever gets these partitions.
    pub fn grace(mut self, grace: Duration) -> AssignmentOptions {
        self.grace = grace;
        self
    }

    /// Runs this with the name of a partition before the worker queues for it.
    ///
    /// The present owner of the partition continues meanwhile, so a cache can be filled without a
    /// gap in service. If nobody owns the partition, the gap lasts longer by this time. A hook that
    /// has not ended within [`move_within`](Self::move_within) is dropped, and another worker gets
    /// the partition.
    pub fn warm<F>(
        mut self,
        warm: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> AssignmentOptions
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.warm = Some(Warm(Arc::new(move |partition| warm(partition).boxed())));
        self
    }

    /// How long a move may take, from its plan until the next owner is known to own the partition.
    ///
    /// After this time the move does not hold up others, and the worker that does not act is set
    /// aside: see [`docs::moves`](crate::docs::moves). The time must be longer than
    /// [`drain_at_most`](Self::drain_at_most), unless that is `Duration::MAX`.
    pub fn move_within(mut self, limit: Duration) -> AssignmentOptions {
        self.move_within = limit;
        self
    }

    /// How long the work has from [`Partition::draining`](crate::Partition::draining) to its end.
    ///
    /// After this time the work's future is dropped, and the partition is released. With
    /// `Duration::MAX` work that ignores the drain keeps its partition, and an event warns.
    pub fn drain_at_most(mut self, limit: Duration) -> AssignmentOptions {
        self.drain_at_most = limit;
        self
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let zero = |subject| Err(InvalidInput::new(subject, "0", "must not be zero"));
        if self.capacity == 0 {
            return zero("capacity");
        }
        if self.max_moves == 0 {
            return zero("max moves");
        }
        if self.address.contains(char::is_control) || self.address.len() > LONGEST_ADDRESS {
            let problem = format!("is no line of at most {LONGEST_ADDRESS} bytes");
            return Err(InvalidInput::new("address", &*self.address, problem));
        }
        let drain = self.drain_at_most;
        if drain < Duration::MAX && self.move_within <= drain {
            let problem = format!("is not longer than a drain may take, {drain:?}");
            let limit = format!("{:?}", self.move_within);
            return Err(InvalidInput::new("move within", limit, problem));
        }
        match self.zone.as_deref().and_then(problem_of_zone) {
            Some(problem) => Err(InvalidInput::new("worker", "", problem)),
            None => Ok(()),
        }
    }
}

impl Default for AssignmentOptions {
    fn default() -> AssignmentOptions {
        AssignmentOptions::new()
    }
}

impl fmt::Debug for Warm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Warm")
    }
}
