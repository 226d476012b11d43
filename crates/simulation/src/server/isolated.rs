//! What a leader knows that is cut off from its followers.

use std::collections::BTreeMap;

use super::session_record::SessionRecord;

/// A leader that is cut off. There is at most one.
#[derive(Debug)]
pub(crate) struct Isolated {
    pub(crate) server: usize,
    pub(crate) cut: u64,
    /// What it knows of the sessions, once the others have given it up: until then what it knows
    /// is what the ensemble knows.
    pub(crate) sessions: Option<BTreeMap<i64, SessionRecord>>,
    /// The sessions that it has tried to expire while nobody had given it up.
    pub(crate) expired: Vec<i64>,
    /// Whether something waits to be committed, so that syncs wait, too.
    pub(crate) waits: bool,
}
