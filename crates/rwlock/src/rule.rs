//! The rules of a read/write lock.
//!
//! Both rules count the same contenders, in the same order. Contenders with equal numbers are
//! ordered by the age of their znodes. This places Curator's downgrade: it creates a reader with
//! the number of the writer that it is about to release, so the reader is right behind that writer.

use std::borrow::Cow;

use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, RuleHints, Verdict};

/// The label of the readers' znodes.
pub(crate) const READ: &str = "__READ__";
/// The label of the writers' znodes.
pub(crate) const WRITE: &str = "__WRIT__";
const KAZOO_READ: &str = "__rlock__";
const KAZOO_WRITE: &str = "__lock__";

fn reads(label: &str) -> bool {
    matches!(label, READ | KAZOO_READ)
}

fn writes(label: &str) -> bool {
    matches!(label, WRITE | KAZOO_WRITE)
}

/// The recipe in events and metrics.
fn recipe(label: &str) -> &'static str {
    match reads(label) {
        true => "read_lock",
        false => "write_lock",
    }
}

/// True if the contender holds: by the reader's rule if it reads, and by the writer's rule if not.
fn holds(view: &QueueView<'_>) -> bool {
    let mut before = view.before().iter();
    match reads(view.me().label()) {
        true => !before.any(|contender| writes(contender.label())),
        false => view.place() == 0,
    }
}

/// The reader's rule: holds if no writer is before it; otherwise waits on the last one.
///
/// While this writer is in the queue, the reader cannot hold. So one watch is enough. If this
/// writer leaves while other writers are before the reader, the reader waits on the last of those.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWriterBefore;

impl Rule for NoWriterBefore {
    fn label(&self) -> Cow<'_, str> {
        READ.into()
    }

    fn counts(&self, label: &str) -> bool {
        reads(label) || writes(label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let mut before = view.before().iter();
        let last_writer = before.rposition(|contender| writes(contender.label()));
        Ok(last_writer.map_or(Verdict::Hold, Verdict::wait_on))
    }

    fn holds(&self, view: &QueueView<'_>) -> bool {
        holds(view)
    }

    fn hints(&self) -> &dyn RuleHints {
        &Hints
    }
}

/// The hints of both rules.
struct Hints;

impl RuleHints for Hints {
    fn recipe(&self, label: &str) -> &'static str {
        recipe(label)
    }

    fn holds_only_first(&self, label: &str) -> bool {
        label == WRITE
    }

    fn may_be_replaced(&self, label: &str) -> bool {
        // A writer that downgrades leaves a reader in its place.
        label == WRITE
    }
}

/// The writer's rule: holds if no contender is before it; otherwise waits on its predecessor.
///
/// The first contender in the queue holds, a reader or a writer. A writer that is not first always
/// has a predecessor.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyBefore;

impl Rule for NobodyBefore {
    fn label(&self) -> Cow<'_, str> {
        WRITE.into()
    }

    fn counts(&self, label: &str) -> bool {
        reads(label) || writes(label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let predecessor = view.place().checked_sub(1);
        Ok(predecessor.map_or(Verdict::Hold, Verdict::wait_on))
    }

    fn holds(&self, view: &QueueView<'_>) -> bool {
        holds(view)
    }

    fn hints(&self) -> &dyn RuleHints {
        &Hints
    }
}
