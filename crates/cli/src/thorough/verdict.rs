//! The verdict about one promise of the servers.

use std::fmt;

use serde_json::{Value, json};

use super::client::Trouble;
use crate::exit::Exit;

/// What servers promise, and what the recipes lose without it.
#[derive(Debug)]
pub(crate) struct Promise {
    /// Its name in the output. It does not change.
    pub(crate) name: &'static str,
    /// What happens if the promise is broken.
    pub(crate) without: &'static str,
}

/// The outcome of a check: what it saw, or what is wrong.
pub(super) type Kept = Result<String, Flaw>;

/// Why a promise is not kept, or not known to be.
#[derive(Debug)]
pub(super) enum Flaw {
    Broken(String),
    /// The promise is broken, and the recipes have a substitute.
    Substituted(String),
    /// The check could not be done.
    Untried(String),
}

pub(super) fn broken<T>(seen: impl Into<String>) -> Result<T, Flaw> {
    Err(Flaw::Broken(seen.into()))
}

impl From<Trouble> for Flaw {
    fn from(trouble: Trouble) -> Flaw {
        match trouble {
            Trouble::Unreachable(_) => Flaw::Untried(trouble.to_string()),
            trouble => Flaw::Broken(trouble.to_string()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Verdict {
    promise: &'static Promise,
    outcome: Kept,
}

impl Verdict {
    pub(super) fn new(promise: &'static Promise, outcome: Kept) -> Verdict {
        Verdict { promise, outcome }
    }

    /// The exit code, if the promise is broken or could not be tried.
    pub(crate) fn exit(&self) -> Option<Exit> {
        match &self.outcome {
            Ok(_) | Err(Flaw::Substituted(_)) => None,
            Err(Flaw::Broken(_)) => Some(Exit::BrokenPromise),
            Err(Flaw::Untried(_)) => Some(Exit::Unavailable),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let (verdict, text) = match &self.outcome {
            Ok(seen) => ("kept", seen),
            Err(Flaw::Broken(seen)) => ("broken", seen),
            Err(Flaw::Substituted(seen)) => ("substituted", seen),
            Err(Flaw::Untried(cause)) => ("untried", cause),
        };
        json!({
            "promise": self.promise.name,
            "verdict": verdict,
            "text": text,
            "without": self.promise.without,
            "exit": self.exit().map(Exit::code),
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Promise { name, without } = self.promise;
        match &self.outcome {
            Ok(seen) => write!(formatter, "ok    {name}: {seen}"),
            Err(Flaw::Broken(seen)) => write!(formatter, "BAD   {name}: {seen}; so {without}"),
            Err(Flaw::Substituted(seen)) => {
                write!(formatter, "note  {name}: {seen}; so {without}")
            }
            Err(Flaw::Untried(cause)) => write!(formatter, "BAD   {name}: not tried: {cause}"),
        }
    }
}
