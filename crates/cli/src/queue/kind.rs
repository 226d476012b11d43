//! The recipe of a directory, read from the names of its contenders.

use std::fmt;

use zookeeper_recipes_core::{Contender, NodePath, QueueView, Rule, Verdict};
use zookeeper_recipes_election::FirstCandidate;
use zookeeper_recipes_lock::FirstInQueue;
use zookeeper_recipes_rwlock::ReadOrWrite;
use zookeeper_recipes_semaphore::WithinPermits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecipeKind {
    Lock,
    ReadWriteLock,
    Semaphore,
    Election,
    /// The leases of Curator's semaphore, whose number of permits no znode records.
    Leases,
    Unknown,
}

impl fmt::Display for RecipeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RecipeKind::Lock => "exclusive lock",
            RecipeKind::ReadWriteLock => "read/write lock",
            RecipeKind::Semaphore => "semaphore",
            RecipeKind::Election => "election",
            RecipeKind::Leases => "leases of a Curator semaphore",
            RecipeKind::Unknown => "empty",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// The lock of one that holds alone: of a lock, or of a writer as kazoo writes it.
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
pub(super) fn contender(name: &str) -> Option<Contender> {
    Contender::parse(name, |label| wish(label).is_some())
}

/// True if this is the name of a contender of some recipe.
pub(crate) fn is_contender(name: &str) -> bool {
    contender(name).is_some()
}

pub(super) fn recipe(contenders: &[Contender]) -> RecipeKind {
    let wishes = || {
        contenders
            .iter()
            .filter_map(|contender| wish(contender.label()))
    };
    // kazoo's writers have the label of its locks.
    if wishes().any(|wish| matches!(wish, Wish::Read | Wish::Write)) {
        return RecipeKind::ReadWriteLock;
    }
    match wishes().next() {
        Some(Wish::Alone | Wish::Read | Wish::Write) => RecipeKind::Lock,
        Some(Wish::Permits(_)) => RecipeKind::Semaphore,
        Some(Wish::Lead | Wish::Standby) => RecipeKind::Election,
        Some(Wish::Lease) => RecipeKind::Leases,
        None => RecipeKind::Unknown,
    }
}

/// True if the contenders are of several recipes, which do not see each other.
pub(super) fn is_mixed(contenders: &[Contender]) -> bool {
    let whole = recipe(contenders);
    contenders
        .iter()
        .any(|one| match (whole, recipe(std::slice::from_ref(one))) {
            // kazoo's writers have the label of its locks.
            (RecipeKind::ReadWriteLock, RecipeKind::Lock) => false,
            (whole, own) => whole != own,
        })
}

/// What a contender wants, in a word or two.
pub(super) fn kind(recipe: RecipeKind, contender: &Contender) -> String {
    match (recipe, wish(contender.label())) {
        (RecipeKind::ReadWriteLock, Some(Wish::Alone | Wish::Write)) => "write".to_owned(),
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

/// What the recipe's own rule says of the contender at this place.
///
/// `None` if it cannot be known, as for Curator's leases. A contender that wants more permits than
/// there are waits for no place.
pub(super) fn verdict(
    path: &NodePath,
    contenders: &[Contender],
    place: usize,
    permits: Option<u32>,
) -> Option<Verdict> {
    let (before, me) = (&contenders[..place], &contenders[place]);
    let data = permits.map(|permits| permits.to_string().into_bytes());
    let view = QueueView::new(before, me, data.as_deref());
    let reads_or_writes = recipe(contenders) == RecipeKind::ReadWriteLock;
    let rule: Box<dyn Rule> = match wish(me.label())? {
        Wish::Alone if reads_or_writes => Box::new(ReadOrWrite::Write),
        Wish::Alone => Box::new(FirstInQueue),
        Wish::Read => Box::new(ReadOrWrite::Read),
        Wish::Write => Box::new(ReadOrWrite::Write),
        Wish::Lead | Wish::Standby => Box::new(FirstCandidate::default()),
        Wish::Permits(weight) if weight > permits? => {
            return Some(Verdict::Wait { on: Vec::new() });
        }
        Wish::Permits(weight) => Box::new(WithinPermits::new(path, permits?, weight).ok()?),
        Wish::Lease => return None,
    };
    rule.decide(&view).ok()
}
