//! The kind of a queue and the rule of its contenders, both read from their names.

use std::fmt;

use zookeeper_recipes_core::Contender;

/// The recipe of a queue, as the names of its contenders say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum QueueKind {
    /// An exclusive lock, of any client. An election of kazoo is one, too.
    Lock,
    /// The lock of a job that runs at most once per time slot: its directory records the job.
    OncePerSlot,
    /// The lock of a partition of an assignment.
    Partition,
    /// A read/write lock, of ours, of Curator or of kazoo.
    ReadWriteLock,
    /// A semaphore. Its directory records the number of permits.
    Semaphore,
    /// A leader election, of ours or of Curator's `LeaderLatch`.
    Election,
    /// The leases of Curator's `InterProcessSemaphoreV2`, whose number no znode records.
    CuratorSemaphore,
    /// The leases of kazoo's `Semaphore`. Each lease is held; kazoo's waiters have no znode here.
    KazooSemaphore,
    /// Ephemeral znodes with any other names: the members of a group, or locks of one znode.
    ///
    /// Each of them holds its name.
    Group,
    /// No contender is here.
    Empty,
}

impl fmt::Display for QueueKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            QueueKind::Lock => "exclusive lock",
            QueueKind::OncePerSlot => "job per time slot",
            QueueKind::Partition => "lock of a partition",
            QueueKind::ReadWriteLock => "read/write lock",
            QueueKind::Semaphore => "semaphore",
            QueueKind::Election => "election",
            QueueKind::CuratorSemaphore => "leases of a Curator semaphore",
            QueueKind::KazooSemaphore => "leases of a kazoo semaphore",
            QueueKind::Group => "group",
            QueueKind::Empty => "empty",
        })
    }
}

/// What a contender wants, as its label says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Lock,
    /// A lock or the write lock: kazoo names both the same.
    KazooLock,
    Read,
    Write,
    Permits(u32),
    Lead,
    /// To lead only while no other campaigns.
    Standby,
    Lease,
}

/// The rule that a contender keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipe {
    Lock,
    ReadWriteLock,
    Semaphore,
    Election,
    CuratorSemaphore,
}

impl Recipe {
    /// True if the rule counts contenders that want this.
    pub(crate) fn counts(self, wish: Wish) -> bool {
        let kazoo_writes = self == Recipe::ReadWriteLock && wish == Wish::KazooLock;
        kazoo_writes || self == recipe(QueueKind::Lock, wish)
    }
}

/// The rule of a contender of a queue of this kind.
pub(crate) fn recipe(kind: QueueKind, wish: Wish) -> Recipe {
    match wish {
        Wish::KazooLock if kind == QueueKind::ReadWriteLock => Recipe::ReadWriteLock,
        Wish::Lock | Wish::KazooLock => Recipe::Lock,
        Wish::Read | Wish::Write => Recipe::ReadWriteLock,
        Wish::Permits(_) => Recipe::Semaphore,
        Wish::Lead | Wish::Standby => Recipe::Election,
        Wish::Lease => Recipe::CuratorSemaphore,
    }
}

pub(crate) fn wish(label: &str) -> Option<Wish> {
    match label {
        "lock-" | "-lock-" => Some(Wish::Lock),
        "__lock__" => Some(Wish::KazooLock),
        "__READ__" | "__rlock__" => Some(Wish::Read),
        "__WRIT__" => Some(Wish::Write),
        "latch-" => Some(Wish::Lead),
        "standby-latch-" => Some(Wish::Standby),
        "lease-" => Some(Wish::Lease),
        _ => {
            let weight = label.strip_prefix("permit-")?.strip_suffix('-')?;
            let number: u32 = weight.parse().ok()?;
            (number > 0 && number.to_string() == weight).then_some(Wish::Permits(number))
        }
    }
}

/// True if this contender may become a reader in its place.
pub(crate) fn is_writer(contender: &Contender) -> bool {
    wish(contender.label()) == Some(Wish::Write)
}

/// Reads the name of a contender of any recipe.
pub(crate) fn contender(name: &str) -> Option<Contender> {
    Contender::parse(name, |label| wish(label).is_some())
}

/// True if this is the name of a contender of a recipe that an overview knows.
pub fn is_contender(name: &str) -> bool {
    contender(name).is_some()
}

/// The kind of the queue of these contenders.
pub(crate) fn kind(contenders: &[Contender]) -> QueueKind {
    let wishes = || contenders.iter().filter_map(|it| wish(it.label()));
    // kazoo's writers have the label of its locks.
    if wishes().any(|wish| matches!(wish, Wish::Read | Wish::Write)) {
        return QueueKind::ReadWriteLock;
    }
    match wishes().next() {
        Some(Wish::Lock | Wish::KazooLock | Wish::Read | Wish::Write) => QueueKind::Lock,
        Some(Wish::Permits(_)) => QueueKind::Semaphore,
        Some(Wish::Lead | Wish::Standby) => QueueKind::Election,
        Some(Wish::Lease) => QueueKind::CuratorSemaphore,
        None => QueueKind::Empty,
    }
}

/// True if the contenders are of several recipes, which do not see each other.
pub(crate) fn is_mixed(whole: QueueKind, contenders: &[Contender]) -> bool {
    let wishes = contenders.iter().filter_map(|it| wish(it.label()));
    let mut recipes = wishes.map(|wish| recipe(whole, wish));
    let first = recipes.next();
    recipes.any(|other| Some(other) != first)
}

/// True if contenders for a lock have names of kazoo, and others have names that kazoo does not
/// count unless it is configured to.
pub(crate) fn may_pass_unseen(contenders: &[Contender]) -> bool {
    let locks = contenders.iter().filter(|it| {
        let wish = wish(it.label());
        wish.is_some_and(|it| Recipe::Lock.counts(it) || Recipe::ReadWriteLock.counts(it))
    });
    let mut of_kazoo = locks.map(|it| matches!(it.label(), "__lock__" | "__rlock__"));
    let first = of_kazoo.next();
    of_kazoo.any(|other| Some(other) != first)
}

/// True if this contender wants to lead.
pub(crate) fn is_candidate(contender: &Contender) -> bool {
    let wish = wish(contender.label());
    wish.is_some_and(|it| Recipe::Election.counts(it))
}

/// What a contender wants, in a word or two.
pub(crate) fn wanted(kind: QueueKind, contender: &Contender) -> String {
    match (kind, wish(contender.label())) {
        (QueueKind::ReadWriteLock, Some(Wish::KazooLock)) => "write".to_owned(),
        (_, Some(Wish::Write)) => "write".to_owned(),
        (_, Some(Wish::Read)) => "read".to_owned(),
        (_, Some(Wish::Permits(1))) => "1 permit".to_owned(),
        (_, Some(Wish::Permits(weight))) => format!("{weight} permits"),
        (_, Some(Wish::Lead)) => "lead".to_owned(),
        (_, Some(Wish::Standby)) => "standby".to_owned(),
        (_, Some(Wish::Lease)) => "lease".to_owned(),
        (_, Some(Wish::Lock | Wish::KazooLock) | None) => "lock".to_owned(),
    }
}
