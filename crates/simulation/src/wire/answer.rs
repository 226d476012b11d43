//! What servers answer.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Created, Outcome, Stat};

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Created(Created),
    Children(Vec<String>),
    Data(Vec<u8>, Stat),
    Exists(Option<Stat>),
    Outcomes(Vec<Outcome>),
    Each(Vec<Option<(Vec<u8>, Stat)>>),
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        match self {
            Answer::Done => "done".to_owned(),
            Answer::Created(created) => {
                format!("created {} at {:#x}", created.path, created.stat.czxid)
            }
            Answer::Children(names) => format!("{} children {names:?}", names.len()),
            Answer::Data(data, stat) => format!("{} bytes at {:#x}", data.len(), stat.mzxid),
            Answer::Exists(Some(stat)) => format!("exists at {:#x}", stat.mzxid),
            Answer::Exists(None) => "no such znode".to_owned(),
            Answer::Outcomes(outcomes) => format!("{} operations done", outcomes.len()),
            Answer::Each(nodes) => {
                format!(
                    "{} of {} there",
                    nodes.iter().flatten().count(),
                    nodes.len()
                )
            }
        }
    }
}

/// Why a server did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Refused {
        operation: Option<usize>,
        refusal: Refusal,
    },
    /// The session is over.
    SessionExpired,
    /// The session has gone to another server: this connection is no longer its own.
    SessionMoved,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused {
            operation: None,
            refusal,
        }
    }
}
