//! Broken promises: what a check finds, and what a run reports.

use std::fmt;
use std::time::Duration;

use zookeeper_recipes_testkit::history;

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, by the simulation's clock.
    pub at: Duration,
    /// Which promise.
    pub promise: &'static str,
    /// What happened instead.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.as_secs_f64();
        write!(formatter, "at {at:.3}s: {}: {}", self.promise, self.text)
    }
}

/// The broken promises that a look has found.
pub(crate) type Findings = Vec<(&'static str, String)>;

/// What the judge has found.
pub(crate) fn found(violations: impl IntoIterator<Item = history::Violation>) -> Findings {
    let violations = violations.into_iter();
    violations.map(|it| (it.promise, it.text)).collect()
}
