//! A contender, as an overview shows it.

use std::sync::Arc;
use std::time::SystemTime;

use zookeeper_recipes_core::{FencingToken, SessionId};

/// The most characters of a label.
const LONGEST: usize = 60;

/// A contender in a queue: who it is, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContenderStatus {
    /// The number of contenders before this one.
    pub position: usize,
    /// The name of its znode.
    pub name: String,
    /// What it wants, in a word or two: `lock`, `read`, `2 permits`, `lead`.
    pub wants: String,
    /// Whether it holds or waits.
    pub state: ContenderState,
    /// Who it is, as the data of its znode says, [in one line](printable). Empty if there is none.
    pub owner: Arc<str>,
    /// When its znode was created, by the clock of the leading server.
    ///
    /// A hold may have begun later: ZooKeeper does not record that.
    pub created: SystemTime,
    /// The session that its znode belongs to. `SessionId(0)` if the znode is persistent.
    pub session_id: SessionId,
    /// The fencing token of its hold, present or future.
    pub fencing_token: FencingToken,
}

impl ContenderStatus {
    /// True if the znode belongs to no session, so that it remains until somebody deletes it.
    pub fn is_persistent(&self) -> bool {
        self.session_id.0 == 0
    }
}

/// Whether a contender holds, by the rule of its recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContenderState {
    /// It holds. Its process may not know it yet, or may be dead until its session expires.
    Holds,
    /// It waits for the contenders at these positions.
    ///
    /// The list is empty if the contender wants more permits than there are.
    WaitsFor(Vec<usize>),
    /// It holds or waits: no znode records which.
    Unknown,
}

/// Data as text in one line: at most 60 characters, without control characters.
///
/// Bytes that are no text are shown as their number.
pub fn printable(data: impl AsRef<[u8]>) -> String {
    let data = data.as_ref();
    let shown = |letter: char| if letter.is_control() { '?' } else { letter };
    match std::str::from_utf8(data) {
        Ok(text) => text.chars().take(LONGEST).map(shown).collect(),
        Err(_) => format!("({} bytes)", data.len()),
    }
}
