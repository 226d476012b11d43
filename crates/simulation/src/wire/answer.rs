//! The answers of servers.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, Created, Outcome, Stat};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Created(Created),
    Children(Vec<String>),
    Exists(Option<Stat>),
    Outcomes(Vec<Outcome>),
    /// The metadata that a single write leaves.
    Stat(Stat),
    /// The data, if there is any, with the metadata.
    DataIfAny(Option<Vec<u8>>, Stat),
    ChildrenAndStat(Names, Stat),
    Acl(Vec<Acl>, Stat),
    Count(i32),
    Identities(Vec<AuthId>),
    /// The answers to several reads.
    Answers(Vec<Result<Answer, Refusal>>),
    WatchAdded,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        match self {
            Answer::Done | Answer::WatchAdded => "done".to_owned(),
            Answer::Created(created) => {
                format!("created {} at {:#x}", created.path, created.stat.czxid)
            }
            Answer::Exists(Some(stat)) => format!("exists at {:#x}", stat.mzxid),
            Answer::Exists(None) => "no such znode".to_owned(),
            Answer::Stat(stat) => format!("done at {:#x}", stat.mzxid),
            Answer::DataIfAny(data, stat) => {
                let length = data.as_ref().map_or(0, Vec::len);
                format!("{length} bytes at {:#x}", stat.mzxid)
            }
            Answer::ChildrenAndStat(names, _) => {
                let shown: Vec<&str> = names.iter().collect();
                format!("{} children {shown:?}", names.len())
            }
            Answer::Outcomes(outcomes) => format!("{} operations done", outcomes.len()),
            Answer::Answers(answers) => format!("{} answers", answers.len()),
            other => format!("{other:?}"),
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
    /// There is no such watch to remove.
    NoWatch,
    /// The server does not know whether it was done.
    OutcomeUnknown,
    /// The content of the request cannot be read.
    Malformed,
    /// The server does not know this type of request.
    UnknownType,
    /// The members of the ensemble cannot be changed.
    ReconfigurationDisabled,
    /// The client could not show who it is.
    AuthenticationFailed,
}

impl Failure {
    /// True if the server closes the connection after this answer.
    pub(crate) fn ends_connection(&self) -> bool {
        matches!(
            self,
            Failure::SessionExpired | Failure::UnknownType | Failure::AuthenticationFailed
        )
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused {
            operation: None,
            refusal,
        }
    }
}

/// Names in an order. A list of many children takes two allocations, and not one for each name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    text: String,
    /// Where each name ends.
    ends: Vec<usize>,
}

impl Names {
    /// Copies these names.
    pub(crate) fn of<'a>(names: impl ExactSizeIterator<Item = &'a String> + Clone) -> Names {
        let length = names.clone().map(String::len).sum();
        let mut copied = Names {
            text: String::with_capacity(length),
            ends: Vec::with_capacity(names.len()),
        };
        for name in names {
            copied.text.push_str(name);
            copied.ends.push(copied.text.len());
        }
        copied
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let name = &self.text[start..*end];
            start = *end;
            name
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_come_out_as_they_went_in() {
        let given = ["a", "", "ü", "bc"].map(str::to_owned);
        let names = Names::of(given.iter());
        assert_eq!(names.len(), 4);
        assert!(names.iter().eq(given.iter()));
    }
}
