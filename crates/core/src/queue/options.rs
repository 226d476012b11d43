//! The options of a queue, and of each recipe that has one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::invalid_input::InvalidInput;
use crate::path::NodePath;
use crate::rule::WaitStrategy;
use crate::server::ensemble::{Acl, CreateMode};
use crate::server::scope::open_acl;
use crate::session::handle::Session;

/// Options of a recipe: `LockOptions`, `RwLockOptions`, `SemaphoreOptions`, `ElectionOptions`,
/// `GroupOptions` and `SingleNodeOptions` are this type.
///
/// An exclusive lock sets [`one_contender`](Self::one_contender), and a job once per slot sets
/// [`directories`](Self::directories) to persistent ones. An option that a recipe cannot use is refused
/// as [`InvalidInput`] when the recipe is made:
///
/// | recipe | refuses |
/// |---|---|
/// | read/write lock | [`one_contender`](Self::one_contender) |
/// | semaphore | [`strategy`](Self::strategy), [`mark_release`](Self::mark_release), [`one_contender`](Self::one_contender) |
/// | election | the same, and [`data`](Self::data), because it is the candidate's id |
/// | single-node lock | the same as a semaphore, and [`after_session_loss`](Self::after_session_loss) |
/// | group | the same as a single-node lock, and [`data`](Self::data), because it is that of the member |
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueOptions {
    pub(crate) strategy: WaitStrategy,
    /// `None` until the recipe is made, if no data is set.
    data: Option<Arc<[u8]>>,
    pub(crate) name: Arc<str>,
    pub(crate) acl: Vec<Acl>,
    pub(crate) directories: Directories,
    pub(crate) after_session_loss: AfterSessionLoss,
    pub(crate) marks_release: bool,
    pub(crate) is_one_contender: bool,
    pub(crate) max_hold: Option<Duration>,
    /// A contender has a permit while it enters the queue.
    pub(crate) entries: Option<Arc<Semaphore>>,
}

/// The kind of znode that a missing directory and its missing parents are created as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Directories {
    /// Container znodes, which the server deletes some time after they are empty.
    ///
    /// By default a server deletes at most 10,000 in a minute: see
    /// [what can go wrong](crate::docs::failures#many-directories).
    ///
    /// A server older than 3.5.3 has no containers. It gets persistent znodes. So does a server
    /// that closed three connections in a row at the create of a container, for ten minutes, and
    /// for twice that each further time. Once a server has created a container, it gets containers.
    #[default]
    Container,
    /// Persistent znodes, which the server does not delete.
    Persistent,
}

impl Directories {
    pub(crate) fn mode(self) -> CreateMode {
        match self {
            Directories::Container => CreateMode::Container,
            Directories::Persistent => CreateMode::Persistent,
        }
    }
}

/// What a waiting attempt does when its session expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AfterSessionLoss {
    /// The attempt fails with [`Error::SessionOver`](crate::Error::SessionOver).
    #[default]
    Fail,
    /// The attempt goes to the end of the queue, in a new session.
    Requeue,
}

impl QueueOptions {
    /// The defaults.
    ///
    /// | option | default |
    /// |---|---|
    /// | strategy | watch the predecessor |
    /// | name | none |
    /// | data | the [owner](crate::Session::owner): `service@host:pid` |
    /// | access control list | everyone may do everything |
    /// | directories | containers |
    /// | after session loss | fail |
    /// | mark release | on, if the rule and the ensemble allow it |
    /// | one contender | off |
    /// | max hold | no limit |
    pub fn new() -> QueueOptions {
        QueueOptions {
            strategy: WaitStrategy::Predecessor,
            data: None,
            name: Arc::default(),
            acl: open_acl(),
            directories: Directories::Container,
            after_session_loss: AfterSessionLoss::Fail,
            marks_release: true,
            is_one_contender: false,
            max_hold: None,
            entries: None,
        }
    }

    /// How a waiter learns that its turn may have come.
    ///
    /// By default it watches its predecessor. The other ways are for comparison, and cost the
    /// ensemble more.
    pub fn strategy(mut self, strategy: WaitStrategy) -> QueueOptions {
        self.strategy = strategy;
        self
    }

    /// The data of the contender's znode, for [`contenders`](crate::Recipe::contenders) and for
    /// operators.
    ///
    /// By default the [owner](crate::Session::owner). A request must not be longer than the servers
    /// accept: [`ConnectOptions::jute_maxbuffer`](crate::ConnectOptions::jute_maxbuffer).
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> QueueOptions {
        self.data = Some(data.into().into());
        self
    }

    /// The name of the recipe in events, and a label of its metrics.
    ///
    /// By default none. Many names make many time series: a path is no label unless you choose it
    /// as the name. See [`docs::events`](crate::docs::events).
    pub fn name(mut self, name: impl Into<Arc<str>>) -> QueueOptions {
        self.name = name.into();
        self
    }

    /// The access control list of the created znodes. It must not be empty.
    ///
    /// Missing directories on the path get it, too. If recipes with other lists share a directory,
    /// create the directory before.
    ///
    /// If releases are marked, the list's readers can read a contender's znode, and only its own
    /// session can write to it.
    ///
    /// If the list does not permit the session itself to create, the server creates the directory
    /// with this list and refuses the first create below it. The directory remains. With
    /// [`AuthId::authed`](crate::AuthId::authed) and [`Permission::ALL`](crate::Permission::ALL)
    /// this cannot happen.
    ///
    /// ```
    /// use zookeeper_recipes_core::{Acl, AuthId, ConnectOptions, Permission, QueueOptions};
    ///
    /// // Sessions with these credentials may do anything, everyone else may read.
    /// let connect = ConnectOptions::new().auth("digest", "service:secret");
    /// let options = QueueOptions::new().acl([
    ///     Acl::new(Permission::ALL, AuthId::authed()),
    ///     Acl::new(Permission::READ, AuthId::anyone()),
    /// ]);
    /// # let _ = (connect, options);
    /// ```
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> QueueOptions {
        self.acl = acl.into();
        self
    }

    /// The kind of znode that missing directories are created as.
    ///
    /// By default containers, which the server deletes some time after they are empty.
    pub fn directories(mut self, kind: Directories) -> QueueOptions {
        self.directories = kind;
        self
    }

    /// What a waiting attempt does when its session expires.
    pub fn after_session_loss(mut self, then: AfterSessionLoss) -> QueueOptions {
        self.after_session_loss = then;
        self
    }

    /// Turns marked releases on or off.
    ///
    /// After a marked release the next holder need not list the queue. If releases are not marked,
    /// it lists the queue, unless it had only one contender before it. The option costs one request
    /// for each session. It has no effect if the rule or the ensemble does not allow it: see
    /// [`docs::handoff`](crate::docs::handoff). Turn this off if other clients in the queue react
    /// to node deletion only.
    pub fn mark_release(mut self, mark: bool) -> QueueOptions {
        self.marks_release = mark;
        self
    }

    /// Makes the clones of one value one contender: they queue within the process, first in, first
    /// out.
    ///
    /// Clones of an `ExclusiveLock` queue so in any case. By default each attempt has a znode in the
    /// directory. With this option the next task creates its znode once the deletion of the znode
    /// before is sent. Both requests leave together, so a turn costs one round trip. Each hold has a
    /// znode and a token of its own. If a hold is lost, its task no longer keeps the others waiting.
    ///
    /// Use it only if the rule lets one contender hold at a time.
    pub fn one_contender(mut self) -> QueueOptions {
        self.is_one_contender = true;
        self
    }

    /// Ends each hold after this time, even if its work hangs. The time must not be zero.
    ///
    /// The time begins when the hold is acquired. When it has passed, the hold is lost with
    /// [`LossReason::TimeLimit`](crate::LossReason::TimeLimit), by the clock of this process and
    /// without a request. The session then deletes the znode in the background, so that the next
    /// contender holds. By default there is no limit.
    ///
    /// A writer that becomes a reader keeps the time that it has left.
    ///
    /// The limit does not stop the work. The work must stop when the hold is lost, as for every
    /// other loss: see [`Hold::run_until_lost`](crate::Hold::run_until_lost). Work that blocks its
    /// thread, and does not ask [`is_held`](crate::HoldView::is_held), runs beside the next holder. A
    /// [fencing token](crate::FencingToken) or a [guarded write](crate::HoldView::transaction)
    /// protects against that.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a hold with a limit | 0 more | 0 more | 0 more |
    pub fn max_hold(mut self, limit: Duration) -> QueueOptions {
        self.max_hold = Some(limit);
        self
    }

    /// When a hold that begins now reaches its time limit. `None` is no limit.
    pub(crate) fn deadline(&self, now: Duration) -> Option<Duration> {
        self.max_hold.and_then(|limit| now.checked_add(limit))
    }

    /// Takes a permit for each entry into the queue: for the create and the first list.
    ///
    /// A contender that waits in the queue has no permit. A [`try_acquire`](crate::Recipe::try_acquire)
    /// takes none.
    // Hidden: it bounds the requests of an assignment, which has a queue for each partition.
    #[doc(hidden)]
    pub fn entries(mut self, permits: Arc<Semaphore>) -> QueueOptions {
        self.entries = Some(permits);
        self
    }

    /// These options, with the session's owner as data if none is set.
    // Hidden: each recipe calls it when it is made.
    #[doc(hidden)]
    pub fn with_owner(mut self, session: &Session) -> QueueOptions {
        let owner = || session.owner().as_bytes().into();
        self.data.get_or_insert_with(owner);
        self
    }

    /// Refuses options with which no request could create this znode, or no hold would last.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] in each of these cases:
    ///
    /// * The access control list is empty.
    /// * A request with the path, the data and the access control list is longer than the servers
    ///   accept: [`ConnectOptions::jute_maxbuffer`](crate::ConnectOptions::jute_maxbuffer).
    /// * The interval of [`WaitStrategy::Poll`] or the [time limit](Self::max_hold) is zero.
    pub fn check_znode(
        &self,
        session: &Session,
        path: &NodePath,
        data: &[u8],
    ) -> Result<(), InvalidInput> {
        self.check_contender(session, path, "", data)
    }

    /// As [`check_znode`](Self::check_znode), for a contender of this name in this directory.
    pub(crate) fn check_contender(
        &self,
        session: &Session,
        directory: &NodePath,
        name: &str,
        data: &[u8],
    ) -> Result<(), InvalidInput> {
        let refuse = |subject, value, problem| Err(InvalidInput::new(subject, value, problem));
        if self.max_hold == Some(Duration::ZERO) {
            return refuse("time limit of a hold", "0", "must not be zero");
        }
        if self.strategy == WaitStrategy::Poll(Duration::ZERO) {
            return refuse("poll interval", "0", "must not be zero");
        }
        let scope = session.scope();
        scope.check_contender(directory.as_str(), name, data, &self.acl)
    }

    /// Refuses the options of these names that are set, because this recipe cannot use them.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`], which names the option and the recipe.
    // Hidden: each recipe calls it when it is made.
    #[doc(hidden)]
    pub fn refuse(&self, unused: &[&str], recipe: &str) -> Result<(), InvalidInput> {
        let set = [
            ("strategy", self.strategy != WaitStrategy::Predecessor),
            ("data", self.data.is_some()),
            (
                "after_session_loss",
                self.after_session_loss != AfterSessionLoss::Fail,
            ),
            ("mark_release", !self.marks_release),
            ("one_contender", self.is_one_contender),
        ];
        let set = set.into_iter().filter(|(name, _)| unused.contains(name));
        InvalidInput::refuse_set(set, recipe)
    }

    /// The [`data`](Self::data). Empty if none is set and no recipe was made with these options.
    pub fn get_data(&self) -> &[u8] {
        self.data.as_deref().unwrap_or_default()
    }

    /// The [`acl`](Self::acl).
    pub fn get_acl(&self) -> &[Acl] {
        &self.acl
    }
}

impl Default for QueueOptions {
    fn default() -> QueueOptions {
        QueueOptions::new()
    }
}
