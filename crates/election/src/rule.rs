//! The rule of a leader election.

use std::borrow::Cow;

use zookeeper_recipes_core::{Contender, InvalidInput, QueueView, Rule, Verdict};

use crate::directory_data::DirectoryData;

/// The label of a candidate, before the number in its name.
const LABEL: &str = "latch-";
/// The label of a candidate that leads only while no other campaigns.
///
/// Curator's `LeaderLatch` takes the number after the last `latch-` in a name.
const STANDBY: &str = "standby-latch-";

/// Leads if no candidate is before it; otherwise waits on its predecessor.
///
/// The names are those of Apache Curator's `LeaderLatch`: `_c_<uuid>-latch-<number>`. A waiting
/// `LeaderLatch` reacts only to the deletion of its predecessor, so it would miss a marked release.
/// So a resignation is a plain deletion. The next candidate lists the queue and reads the directory
/// before it leads, because a candidate behind it may go first.
///
/// # Who steps back
///
/// Only the first candidate leads. A candidate that steps back when its turn comes leaves the
/// queue, and enters it again at the end. There are two cases.
///
/// * The directory's data names a successor, and the successor is behind the candidate. The
///   candidate then has a higher number than the successor, so it steps back once.
/// * The candidate is on standby, and a candidate that is not on standby is behind it. If it is the
///   successor itself, it leads.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstCandidate {
    standby: bool,
}

impl FirstCandidate {
    /// The rule of a candidate that leads only while no other campaigns.
    pub fn standby() -> FirstCandidate {
        FirstCandidate { standby: true }
    }
}

impl Rule for FirstCandidate {
    fn label(&self) -> Cow<'_, str> {
        match self.standby {
            true => STANDBY.into(),
            false => LABEL.into(),
        }
    }

    fn counts(&self, label: &str) -> bool {
        matches!(label, LABEL | STANDBY)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(match view.place().checked_sub(1) {
            Some(predecessor) => Verdict::wait_on(predecessor),
            None if steps_back(view) => Verdict::StepBack,
            None => Verdict::Hold,
        })
    }

    fn looks_behind(&self) -> bool {
        true
    }

    fn recipe(&self, _label: &str) -> &'static str {
        "election"
    }

    fn may_be_replaced(&self, _label: &str) -> bool {
        false
    }
}

/// True if the candidate has to leave its place to one behind it.
pub(crate) fn steps_back(view: &QueueView<'_>) -> bool {
    let successor = view.directory_data().and_then(named_successor);
    has_to_step_back(view.me(), view.behind(), successor.as_deref())
}

/// True if the candidate has to leave its place to one of those behind it.
///
/// `successor` is the name that the data of the election's directory [names](named_successor).
pub fn has_to_step_back<'c>(
    me: &Contender,
    behind: impl IntoIterator<Item = &'c Contender>,
    successor: Option<&str>,
) -> bool {
    if successor == Some(me.name()) {
        return false;
    }
    let mut behind = behind.into_iter();
    behind.any(|other| Some(other.name()) == successor || (is_standby(me) && !is_standby(other)))
}

/// True if the candidate may have to step back, whoever is behind it.
pub(crate) fn may_step_back(me: &Contender, data: &[u8]) -> bool {
    is_standby(me) || named_successor(data).is_some_and(|name| may_be_behind(me, &name))
}

/// The candidate with this name, on standby or not.
pub(crate) fn candidate_named(name: &str) -> Option<Contender> {
    Contender::parse(name, |label| FirstCandidate::default().counts(label))
}

/// True if the candidate leads only while no other campaigns.
pub(crate) fn is_standby(candidate: &Contender) -> bool {
    candidate.label() == STANDBY
}

/// The name of the candidate's znode that the data of an election's directory names as the successor.
///
/// Data of another program names none.
pub fn named_successor(data: &[u8]) -> Option<String> {
    DirectoryData::parse(data)?.successor
}

/// False if this is the name of `me`, or of a candidate before `me`.
fn may_be_behind(me: &Contender, name: &str) -> bool {
    let number = candidate_named(name).map(|candidate| candidate.sequence().get());
    let before = 0..me.sequence().get();
    name != me.name() && number.is_some_and(|number| !before.contains(&number))
}
