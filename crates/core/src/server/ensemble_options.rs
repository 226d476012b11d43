//! The options of the connections of a session.

use std::fmt;
use std::time::Duration;

use crate::invalid_input::InvalidInput;

/// The session timeout that is asked for if the user sets none.
const USUAL_TIMEOUT: Duration = Duration::from_secs(10);

/// What a user sets for the connections of a session: its timeout and credentials.
///
/// The part of [`ConnectOptions`](crate::ConnectOptions) that the
/// [`Ensemble`](crate::Ensemble::with_options) applies.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnsembleOptions {
    pub(crate) session_timeout: Option<Duration>,
    pub(crate) auth: Vec<(String, Vec<u8>)>,
}

impl EnsembleOptions {
    /// The session timeout that a session asks for.
    pub(crate) fn asked_timeout(&self) -> Duration {
        self.session_timeout.unwrap_or(USUAL_TIMEOUT)
    }

    /// These options, and those of `others`, which count first. Credentials are added.
    pub(crate) fn and(&self, others: &EnsembleOptions) -> EnsembleOptions {
        let mut auth = self.auth.clone();
        let new = others.auth.iter().filter(|each| !self.auth.contains(each));
        auth.extend(new.cloned());
        EnsembleOptions {
            session_timeout: others.session_timeout.or(self.session_timeout),
            auth,
        }
    }

    /// Refuses each option that is set, for an ensemble that connects with options of its own.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if an option is set.
    pub fn refuse(&self) -> Result<(), InvalidInput> {
        let (option, value) = if let Some(timeout) = self.session_timeout {
            ("session timeout", format!("{timeout:?}"))
        } else if let Some((scheme, _)) = self.auth.first() {
            ("credentials of the scheme", scheme.clone())
        } else {
            return Ok(());
        };
        let problem = "cannot be used: this ensemble connects with options of its own";
        Err(InvalidInput::new(option, value, problem))
    }
}

/// Leaves the credentials out.
impl fmt::Debug for EnsembleOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EnsembleOptions")
            .field("session_timeout", &self.session_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/ensemble_options.rs"]
mod tests;
