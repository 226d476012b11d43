//! The token that a client has to show.

use std::path::Path;

use subtle::ConstantTimeEq;

use crate::credentials::warn_of_readers;
use crate::failure::Failure;

/// A shorter token could be guessed.
const SHORTEST: usize = 16;

/// A secret that clients send as `Authorization: Bearer <token>`.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// Reads the first line of a file.
    pub(crate) fn read(file: &Path) -> Result<Token, Failure> {
        warn_of_readers(file);
        let text = std::fs::read_to_string(file);
        let wrong = |problem: String| Failure::usage(format!("--token-file {file:?}: {problem}"));
        let text = text.map_err(|error| wrong(error.to_string()))?;
        let token = text.lines().next().unwrap_or_default().trim();
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(format!(
                "the first line has to be a token of {SHORTEST} or more ASCII letters without a space"
            )));
        }
        Ok(Token(token.to_owned()))
    }

    /// True if this is the value of the header `Authorization`. The time does not depend on how many
    /// letters are right.
    pub(super) fn is_shown_by(&self, authorization: &str) -> bool {
        let shown = authorization.split_once(' ');
        let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
        shown.is_some_and(|(_, shown)| shown.trim().as_bytes().ct_eq(self.0.as_bytes()).into())
    }
}
