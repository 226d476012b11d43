//! Input that is refused.

/// A value that was refused, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject} {value:?} {problem}")]
pub struct InvalidInput {
    subject: &'static str,
    value: String,
    problem: String,
}

impl InvalidInput {
    /// An error of the form `subject "value" problem`, such as `path "a" is not absolute`.
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

    /// Refuses the first of these options that is set, because this recipe or way cannot use it.
    pub(crate) fn refuse_set<'a>(
        options: impl IntoIterator<Item = (&'a str, bool)>,
        user: &str,
    ) -> Result<(), InvalidInput> {
        match options.into_iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) => {
                let problem = format!("cannot be used with {user}");
                Err(InvalidInput::new("option", name, problem))
            }
            None => Ok(()),
        }
    }

    /// What was refused, such as `path`.
    pub fn subject(&self) -> &'static str {
        self.subject
    }

    /// The value that was refused.
    pub fn value(&self) -> &str {
        &self.value
    }
}
