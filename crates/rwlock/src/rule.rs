//! The rule of a read/write lock.

use std::borrow::Cow;

use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};

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

/// The rule of the readers and writers in one queue. The value says which of the two it creates.
///
/// * A reader holds if no writer is before it; otherwise it waits on the last one. While this writer
///   is in the queue, the reader cannot hold. So one watch is enough. If this writer leaves while
///   other writers are before the reader, the reader waits on the last of those.
/// * A writer holds if no contender is before it; otherwise it waits on its predecessor.
///
/// Contenders with equal numbers are ordered by the age of their znodes. This places Curator's
/// downgrade: it creates a reader with the number of the writer that it is about to release, so the
/// reader is right behind that writer.
#[derive(Clone, Copy, Debug)]
pub enum ReadOrWrite {
    /// The rule of a reader.
    Read,
    /// The rule of a writer.
    Write,
}

impl Rule for ReadOrWrite {
    fn label(&self) -> Cow<'_, str> {
        match self {
            ReadOrWrite::Read => READ.into(),
            ReadOrWrite::Write => WRITE.into(),
        }
    }

    fn counts(&self, label: &str) -> bool {
        reads(label) || writes(label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let mut before = view.before().iter();
        let waits_on = match reads(view.me().label()) {
            true => before.rposition(|contender| writes(contender.label())),
            false => view.place().checked_sub(1),
        };
        Ok(waits_on.map_or(Verdict::Hold, Verdict::wait_on))
    }

    fn recipe(&self, label: &str) -> &'static str {
        match reads(label) {
            true => "read_lock",
            false => "write_lock",
        }
    }

    fn holds_only_first(&self, label: &str) -> bool {
        label == WRITE
    }

    fn may_be_replaced(&self, label: &str) -> bool {
        // A writer that downgrades leaves a reader in its place.
        label == WRITE
    }
}
