//! The kind of a queue and the rule of its contenders, both read from their names.

use std::fmt;

use zookeeper_recipes_core::{Contender, NodePath, QueueView, Rule, Verdict};
use zookeeper_recipes_election::FirstCandidate;
use zookeeper_recipes_lock::FirstInQueue;
use zookeeper_recipes_rwlock::ReadOrWrite;
use zookeeper_recipes_semaphore::WithinPermits;

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
enum Wish {
    /// The lock of a contender that holds alone: of a lock, or of a writer as kazoo writes it.
    Alone,
    Read,
    Write,
    Permits(u32),
    Lead,
    /// To lead only while no other campaigns.
    Standby,
    Lease,
}

fn wish(label: &str) -> Option<Wish> {
    match label {
        "lock-" | "-lock-" | "__lock__" => Some(Wish::Alone),
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
        Some(Wish::Alone | Wish::Read | Wish::Write) => QueueKind::Lock,
        Some(Wish::Permits(_)) => QueueKind::Semaphore,
        Some(Wish::Lead | Wish::Standby) => QueueKind::Election,
        Some(Wish::Lease) => QueueKind::CuratorSemaphore,
        None => QueueKind::Empty,
    }
}

/// True if the contenders are of several recipes, which do not see each other.
pub(crate) fn is_mixed(whole: QueueKind, contenders: &[Contender]) -> bool {
    contenders
        .iter()
        .any(|one| match (whole, kind(std::slice::from_ref(one))) {
            // kazoo's writers have the label of its locks.
            (QueueKind::ReadWriteLock, QueueKind::Lock) => false,
            (whole, own) => whole != own,
        })
}

/// What a contender wants, in a word or two.
pub(crate) fn wanted(kind: QueueKind, contender: &Contender) -> String {
    match (kind, wish(contender.label())) {
        (QueueKind::ReadWriteLock, Some(Wish::Alone | Wish::Write)) => "write".to_owned(),
        (_, Some(Wish::Write)) => "write".to_owned(),
        (_, Some(Wish::Read)) => "read".to_owned(),
        (_, Some(Wish::Permits(1))) => "1 permit".to_owned(),
        (_, Some(Wish::Permits(weight))) => format!("{weight} permits"),
        (_, Some(Wish::Lead)) => "lead".to_owned(),
        (_, Some(Wish::Standby)) => "standby".to_owned(),
        (_, Some(Wish::Lease)) => "lease".to_owned(),
        (_, Some(Wish::Alone) | None) => "lock".to_owned(),
    }
}

/// What a rule must know of a queue beside the contenders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleInput<'q> {
    pub(crate) path: &'q str,
    pub(crate) kind: QueueKind,
    pub(crate) is_mixed: bool,
    pub(crate) permits: Option<u32>,
}

impl RuleInput<'_> {
    /// What the recipe's own rule says of `me`, which is behind `before`.
    ///
    /// `None` if it cannot be known, as for Curator's leases. A contender that wants more permits
    /// than there are waits for no place.
    pub(crate) fn verdict(&self, before: &[Contender], me: &Contender) -> Option<Verdict> {
        let reads_or_writes = self.kind == QueueKind::ReadWriteLock;
        let rule: Box<dyn Rule> = match wish(me.label())? {
            Wish::Alone if reads_or_writes => Box::new(ReadOrWrite::Write),
            Wish::Alone => Box::new(FirstInQueue),
            Wish::Read => Box::new(ReadOrWrite::Read),
            Wish::Write => Box::new(ReadOrWrite::Write),
            Wish::Lead | Wish::Standby => Box::new(FirstCandidate::default()),
            Wish::Permits(weight) if weight > self.permits? => {
                return Some(Verdict::Wait { on: Vec::new() });
            }
            Wish::Permits(weight) => {
                let path = NodePath::new(self.path).ok()?;
                Box::new(WithinPermits::new(&path, self.permits?, weight).ok()?)
            }
            Wish::Lease => return None,
        };
        let data = self.permits.map(|permits| permits.to_string().into_bytes());
        let decide = |before: &[Contender]| {
            let view = QueueView::new(before, me, data.as_deref());
            rule.decide(&view).ok()
        };
        if !self.is_mixed {
            return decide(before);
        }
        // A rule does not see the contenders of another recipe.
        let counted = before.iter().enumerate();
        let counted = counted.filter(|(_, other)| rule.counts(other.label()));
        let (places, seen): (Vec<usize>, Vec<Contender>) =
            counted.map(|(place, other)| (place, other.clone())).unzip();
        Some(among(&places, decide(&seen)?))
    }
}

/// The same verdict, if the contenders that were shown to the rule are at these places.
pub(crate) fn among(places: &[usize], verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Wait { on } => Verdict::wait_on_any(on.into_iter().map(|place| places[place])),
        verdict => verdict,
    }
}
