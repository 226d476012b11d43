//! Input that is refused before anything is sent.

/// A value that was refused before anything was sent, with what was wrong about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject} {value:?} {problem}")]
pub struct InvalidInput {
    subject: &'static str,
    value: String,
    problem: String,
}

impl InvalidInput {
    /// Says that `value`, given as `subject`, has this `problem`: "path \"a\" is not absolute".
    pub fn new(
        subject: &'static str,
        value: impl Into<String>,
        problem: impl Into<String>,
    ) -> InvalidInput {
        InvalidInput {
            subject,
            value: value.into(),
            problem: problem.into(),
        }
    }

    /// The value that was refused.
    pub fn value(&self) -> &str {
        &self.value
    }
}
